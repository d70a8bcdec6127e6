//go:build unix

package brokertest

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/broker/apache"
)

// Install returns the Apache Kafka that tests may start clusters of, to kill and to pause. It skips a test that does not
// run under `make test-kafka`, or where that was given a broker that is not ours.
func Install(t testing.TB) apache.Install {
	t.Helper()
	NeedReal(t)
	if os.Getenv(apache.EnvStarts) != "1" {
		t.Skip("needs Apache Kafka that it may kill: make test-kafka without BOOTSTRAP")
	}
	in, err := apache.Find(context.Background())
	require.NoError(t, err)
	return in
}

// Cluster starts an Apache Kafka cluster that is the test's own and ends with it. It skips as Install does.
func Cluster(t testing.TB, cfg apache.Config) *apache.Cluster {
	t.Helper()
	c, err := apache.Start(context.Background(), Install(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}
