package processors

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// goleveldb's pool goroutine outlives Close by a second.
func TestMain(m *testing.M) {
	if arg := os.Getenv(envChild); arg != "" {
		if err := runChild(arg); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))...)
}
