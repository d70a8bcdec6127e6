package node_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/node"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/topology"
)

// envBroker makes the test binary a broker, so that what it holds in memory is not the test's. It ends with its stdin.
const envBroker = "QUIESCE_TEST_BROKER"

// goleveldb's pool goroutine outlives Close by a second.
func TestMain(m *testing.M) {
	if os.Getenv(envBroker) != "" {
		b, err := broker.Start(broker.Config{AppendTime: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(b.Bootstrap())
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))...)
}

// jobFile is S1 -> S2 (fan-out) -> S3.
const jobFile = `job: invoices
version: 1
steps:
  s1: {task: {queue: prepare}}
  s2: {after: [s1], fan_out: {split: split, queue: render, window: 200, retry: {attempts: 2, first: 10ms, factor: 1, max: 10ms}}}
  s3: {after: [s2], task: {queue: report}}
`

// loadJob reads a job type.
func loadJob(t *testing.T, file string) *topology.JobType {
	t.Helper()
	j, err := topology.LoadJobType([]byte(file))
	require.NoError(t, err)
	return j
}

// small gives queues few partitions and one short tier: that is what the embedded broker is quick with.
func small(names ...string) (queues []topology.Queue) {
	for _, n := range names {
		queues = append(queues, topology.Queue{Name: n, Partitions: 4, Retries: []time.Duration{10 * time.Millisecond}})
	}
	return queues
}

// start runs a node until the test ends and returns a client of its sidecar.
func start(t *testing.T, cfg node.Config) (*node.Node, *client.Client) {
	t.Helper()
	if len(cfg.Bootstrap) == 0 {
		cfg.Bootstrap = []string{brokertest.Bootstrap(t)}
	}
	cfg.Prefix = fmt.Sprintf("t%d", time.Now().UnixNano())
	cfg.Partitions, cfg.DataDir, cfg.Listen = 2, t.TempDir(), "127.0.0.1:0"
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := node.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop()) })
	c, err := client.New(client.Config{Address: n.Address()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.Eventually(t, func() bool { return !errors.Is(c.Ready(ctx), client.ErrRecovering) }, time.Minute, 20*time.Millisecond)
	return n, c
}

// seen collects what handlers saw.
type seen struct {
	mu    sync.Mutex
	count map[string]int
}

func (s *seen) add(k string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.count[k]++
	return s.count[k]
}

func (s *seen) of(k string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[k]
}

// otherProcess returns the real broker, or an embedded one in a process of its own.
func otherProcess(t *testing.T) string {
	t.Helper()
	if addr := brokertest.Real(); addr != "" {
		return addr
	}
	child := exec.Command(os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), envBroker+"=1"), os.Stderr
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, child.Wait())
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(addr)
}
