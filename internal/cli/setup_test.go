package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/cli"
)

func TestMain(m *testing.M) { binary.Main(m) }

const topologyFile = `topology: t
version: 1
source: a
topics: {a: {partitions: 2}, b: {partitions: 2}}
stages:
  one: {in: [a], out: [b], group: t.one}
  two: {in: [b], group: t.two}
`

// Waits for what must come true: a limit for loaded machines, not a promise.
const (
	waitLimit = time.Minute
	waitTick  = 20 * time.Millisecond
)

// result of one command line.
type result struct {
	code     int
	out, err string
}

// run executes a command line in the test's process.
func run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// isolate keeps the machine's own configuration out of a test and gives it a folder of its own.
func isolate(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	return dir
}

// deployment starts a broker with the topics of topologyFile and of Quiesce.
func deployment(t *testing.T) (bootstrap, dir string) {
	t.Helper()
	dir = isolate(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.yaml"), []byte(topologyFile), 0o600))
	b, err := broker.Start(broker.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	r := run(t, "", "topics", "apply", "--bootstrap-server", b.Bootstrap(), "--topology", "t.yaml", "--partitions", "2")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	return b.Bootstrap(), dir
}

// records reads all that is in a topic now.
func records(t *testing.T, bootstrap, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer c.Close()
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topic)
	require.NoError(t, err)
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	var out []*kgo.Record
	for int64(len(out)) < left {
		f := c.PollFetches(ctx)
		require.NoError(t, f.Err0())
		out = append(out, f.Records()...)
	}
	return out
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
