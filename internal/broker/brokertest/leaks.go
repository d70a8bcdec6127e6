package brokertest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests and fails when one leaves a goroutine behind.
func Main(m *testing.M) { goleak.VerifyTestMain(m, Singletons()...) }

// Singletons are the goroutines that libraries start once per process and never end.
func Singletons() []goleak.Option {
	return []goleak.Option{
		// sarama's metrics.
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
	}
}
