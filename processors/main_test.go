package processors

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// goleveldb's pool goroutine outlives Close by a second.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))...)
}
