package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/processors/worker"
)

func TestConformance(t *testing.T) {
	t.Run("C03", killsItsWorker)
	t.Run("C11", restartsInTheMiddle)
	t.Run("C19", resultTooLarge)
	t.Run("C21", interruptedAttemptsReportNothing)
	t.Run("C21 revoked", revokedAttemptsReportNothing)
	t.Run("C23", retryKeepsTheID)
	t.Run("C24", retriesFollowTheBackoff)
	t.Run("C39", hangsAfterARetry)
	t.Run("C42", queuedTasksDoNotTimeOut)
}

// envChild makes the test binary a worker of that prefix, to die of task 666.
const envChild = "QUIESCE_TEST_WORKER_CHILD"

func TestMain(m *testing.M) {
	if at := os.Getenv(envChild); at != "" {
		child(at)
	}
	brokertest.Main(m)
}

const killer = 666

func child(at string) {
	bootstrap, prefix, _ := strings.Cut(at, " ")
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // the end of stdin is the end of the parent, or of its patience
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	err := worker.Run(ctx, worker.Config{Bootstrap: bootstrap, Prefix: prefix, Queue: "q", Log: quiet, Concurrency: 8,
		Options: []kgo.Opt{kgo.SessionTimeout(childSession()), kgo.HeartbeatInterval(childSession() / 5), kgo.MetadataMinAge(50 * time.Millisecond)},
		Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			if t.Index == killer {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				<-ctx.Done() // the signal may take a moment
			}
			wait(ctx, 2*time.Millisecond)
			return worker.Result{}, ctx.Err()
		}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childSession is the session time-out: a real broker takes no less than 6 s.
func childSession() time.Duration {
	if brokertest.Real() != "" {
		return 6 * time.Second
	}
	return 500 * time.Millisecond
}

// One of 1,000 tasks kills its process at every attempt: it is lost, exactly that one, and the other 999 are ok.
func killsItsWorker(t *testing.T) {
	addr := brokertest.Real()
	if addr == "" {
		addr = brokertest.Start(t, broker.Config{MinSessionTimeout: 100 * time.Millisecond}).Bootstrap()
	}
	k := setupOn(t, addr, 4)
	k.enqueue(subjobs(1000, nil)...)
	control, dead := k.follow(codecs.TopicControl), k.follow(codecs.TopicDeadLetter)
	ctx, cancel := context.WithCancel(t.Context())
	var deaths atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				cmd := exec.Command(os.Args[0])
				cmd.Env, cmd.Stderr = append(os.Environ(), envChild+"="+addr+" "+k.prefix), os.Stderr
				in, err := cmd.StdinPipe()
				if err != nil || cmd.Start() != nil {
					t.Error("worker does not start")
					return
				}
				stop := context.AfterFunc(ctx, func() { in.Close() })
				if cmd.Wait() != nil {
					deaths.Add(1)
				}
				stop()
			}
		})
	}
	got := outcomes(t, control, 1000)
	cancel()
	wg.Wait()
	for i, it := range got {
		if i == killer {
			require.Equal(t, codecs.Lost, it.Outcome)
			require.Equal(t, "delivered 5 times without an end", it.Reason)
		} else {
			require.Equal(t, codecs.OK, it.Outcome, "task %d: %s", i, it.Reason)
		}
	}
	require.Equal(t, uint32(killer), receive(t, dead).Data.(*codecs.Task).Index)
	require.Equal(t, int64(5), deaths.Load())
}

// A result that no record can carry ends the task as failed; it does not stop the worker.
func resultTooLarge(t *testing.T) {
	k := setup(t, 1)
	cfg := k.config()
	cfg.Handler = func(_ context.Context, t *worker.Task) (worker.Result, error) {
		if t.Step == "large" {
			return worker.Result{Payload: &codecs.Payload{Data: make([]byte, 6<<20)}}, nil
		}
		return worker.Result{}, nil
	}
	for _, step := range []string{"large", "small"} {
		k.enqueue(&codecs.Task{Kind: "task", Id: "j." + step, Job: "j", JobKey: "j", Step: step, Round: 1, Attempt: 1})
	}
	jobs := k.follow(codecs.TopicJobs)
	k.run(cfg)
	got := map[string]*codecs.TaskCompleted{}
	for len(got) < 2 {
		d := receive(t, jobs).Data.(*codecs.TaskCompleted)
		got[d.Step] = d
	}
	require.Equal(t, codecs.OK, got["small"].Outcome)
	require.Equal(t, codecs.Failed, got["large"].Outcome)
	require.Contains(t, got["large"].Reason, "reference")
}

func retryKeepsTheID(t *testing.T) {
	var seen []string
	task := subjobs(1, &codecs.Retry{Attempts: 3, First: 1})[0]
	task.Id = "customer-7"
	ends, _ := memory(t, worker.Config{Handler: func(_ context.Context, t *worker.Task) (worker.Result, error) {
		seen = append(seen, fmt.Sprintf("%s %s/%s/%d attempt %d", t.Id, t.Batch, t.Run, t.Index, t.Attempt))
		return worker.Result{}, errors.New("no")
	}}, 1, task)
	require.Equal(t, []string{"customer-7 b/r/0 attempt 1", "customer-7 b/r/0 attempt 2", "customer-7 b/r/0 attempt 3"}, seen)
	require.Equal(t, uint32(3), ends[0].Task.Attempt)
}

// The second attempt hangs and times out like the first would; one that succeeds ends the schedule.
func hangsAfterARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := subjobs(1, &codecs.Retry{Attempts: 5, First: 1000})[0]
		task.AttemptTimeout = 10_000
		var attempts atomic.Int32
		ends, _ := memory(t, worker.Config{Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			switch attempts.Add(1); t.Attempt {
			case 1:
				return worker.Result{}, errors.New("no")
			case 2:
				return hang(ctx, t)
			}
			return worker.Result{}, nil
		}}, 1, task)
		require.Equal(t, codecs.OK, ends[0].Outcome)
		wait(t.Context(), time.Hour)
		require.Equal(t, int32(3), attempts.Load())
	})
}

// Tasks that wait for a slot for longer than their time-out have their whole time when they start.
func queuedTasksDoNotTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := subjobs(100, nil)
		for _, task := range tasks {
			task.AttemptTimeout = 2000
		}
		ends, _ := memory(t, worker.Config{Concurrency: 1, Handler: func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			wait(ctx, time.Second)
			return worker.Result{}, ctx.Err()
		}}, 100, tasks...)
		longest := time.Duration(0)
		for _, e := range ends {
			require.Equal(t, codecs.OK, e.Outcome)
			require.Equal(t, time.Second, e.Run)
			longest = max(longest, e.QueueWait)
		}
		require.Equal(t, 99*time.Second, longest)
	})
}
