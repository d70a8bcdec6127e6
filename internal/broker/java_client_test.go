//go:build unix

package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// The Java client is stricter than those written in Go: it checks every checksum, delta and offset of a batch.
func TestJavaClientOnTheEmbeddedBroker(t *testing.T) {
	in := brokertest.Install(t) // for its Java and its jars
	b := brokertest.Embedded(t, broker.Topic{Name: "t", Partitions: 1, Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	start := time.Now()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, in.Java, "-cp", filepath.Join(in.Libs, "*"), "testdata/JavaClient.java",
		b.Bootstrap(), "t", "none,gzip,snappy,lz4,zstd")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)

	read := map[string]int{}
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var codec string
		var length, ms int64
		_, err := fmt.Sscan(string(line), &codec, &length, &ms)
		require.NoError(t, err, "%s", out)
		require.Equal(t, int64(200), length)
		require.WithinRange(t, time.UnixMilli(ms), start.Add(-time.Second), time.Now())
		read[codec]++
	}
	require.Equal(t, map[string]int{"none": 3, "gzip": 3, "snappy": 3, "lz4": 3, "zstd": 3}, read)
}
