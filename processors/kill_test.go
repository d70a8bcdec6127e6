package processors

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/codecs"
)

// envChild makes the test binary one instance of the processor, to be killed. Its value is a childConfig.
const envChild = "QUIESCE_TEST_CHILD"

type childConfig struct {
	Bootstrap, Prefix, DataDir, InstanceID string

	HoldAt int // the step of a row at which the process stops, and says so
}

// runChild runs a processor until the process is killed.
func runChild(arg string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		return err
	}
	version := fmt.Sprint("pid ", os.Getpid()) // every life decides differently: a decision taken twice would show
	m := &tally{vary: func() string { return version }}
	if c.HoldAt > 0 {
		m.step = func(row *tallyRow, _ *codecs.Event) {
			if row.Steps == c.HoldAt {
				fmt.Println("held")
				select {}
			}
		}
	}
	p, err := New(Config{Bootstrap: []string{c.Bootstrap}, Prefix: c.Prefix, DataDir: c.DataDir, InstanceID: c.InstanceID,
		Machine: m, Timing: Timing{Session: 6 * time.Second},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	return p.Run(context.Background())
}

// child starts an instance as a process of its own.
func (d *deployment) child(dir, instance string) *exec.Cmd {
	d.t.Helper()
	return d.childWith(childConfig{DataDir: dir, InstanceID: instance}, nil)
}

func (d *deployment) childWith(c childConfig, stdout io.Writer) *exec.Cmd {
	d.t.Helper()
	c.Bootstrap, c.Prefix = d.bootstrap, d.prefix
	arg, err := json.Marshal(c)
	require.NoError(d.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+string(arg))
	cmd.Stdout, cmd.Stderr = stdout, testWriter{d.t}
	require.NoError(d.t, cmd.Start())
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// committed is how many inputs the group has behind it.
func (d *deployment) committed() (n int64) {
	resp, err := kadm.NewClient(d.client).FetchOffsets(context.Background(), codecs.Group(d.prefix, codecs.GroupController))
	if err != nil {
		return 0
	}
	resp.Each(func(o kadm.OffsetResponse) { n += max(o.At, 0) })
	return n
}

// TestKill9 kills the process at random moments and starts it on the same, an empty and an older disk.
func TestKill9(t *testing.T) {
	kills := 8
	if long() {
		kills = 200
	}
	d := deploy(t)
	rnd := newRand(t)
	dir, older := t.TempDir(), filepath.Join(t.TempDir(), "older")
	for i := range kills {
		cmd := d.child(dir, "only")
		before := d.committed()
		d.calm(rnd, 50+rnd.IntN(100))
		if i%4 != 0 { // sometimes it dies while it starts
			require.Eventually(t, func() bool { return d.committed() > before }, time.Minute, 5*time.Millisecond)
			d.calm(rnd, 50)
		}
		time.AfterFunc(time.Duration(rnd.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() }) // the random point
		require.Error(t, cmd.Wait())
		switch rnd.IntN(4) {
		case 0:
			dir = t.TempDir()
		case 1:
			copyDir(t, older, dir)
		case 2:
			if _, err := os.Stat(older); err == nil {
				copyDir(t, dir, older)
			}
		}
	}
	cfg := d.config(&tally{})
	cfg.DataDir, cfg.InstanceID = dir, "only"
	p, stop := d.start(cfg)
	d.settled(p)
	stop()
	d.verdict()
	t.Logf("%d kills", kills)
}

func copyDir(t *testing.T, to, from string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(to))
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// TestSuspendedProcessFindsOut suspends the owner beyond its session, lets another one take over, compacts, and wakes it.
func TestSuspendedProcessFindsOut(t *testing.T) {
	if !long() {
		t.Skip("takes minutes: make test-long")
	}
	d := deploy(t)
	rnd := newRand(t)
	dir := t.TempDir()
	for range 2 {
		cmd := d.child(dir, "")
		before := d.committed()
		d.calm(rnd, 300)
		require.Eventually(t, func() bool { return d.committed() > before }, 30*time.Second, time.Millisecond)
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		p, stop := d.start(d.config(&tally{}))
		d.calm(rnd, 100)
		d.settled(p)
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		d.calm(rnd, 100)
		require.Eventually(t, func() bool { return len(p.Status()) < testPartitions && p.Ready() == nil }, time.Minute, 10*time.Millisecond,
			"the suspended one joins again")
		kill(t, cmd)
		d.settled(p)
		d.compact()
		stop()
		d.verdict()
	}
}

// compact runs the cleaner of the embedded broker; a real one runs by itself.
func (d *deployment) compact() {
	if d.broker != nil {
		d.broker.Cluster().Compact()
	}
}
