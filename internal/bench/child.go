package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// child is another process of quiesce.
type child struct {
	cmd    *exec.Cmd
	waiter sync.WaitGroup
}

// start starts a command of quiesce: of cfg.Program, of this process if it is empty. The returned context ends with the
// process.
func (f *field) start(ctx context.Context, args ...string) (*child, context.Context, error) {
	program := f.cfg.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", args[0], err)
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	cmd := exec.CommandContext(ctx, program, append(args, "--bootstrap-server", f.bootstrap, "--prefix", f.prefix)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		end(err)
		return nil, nil, fmt.Errorf("%s: %w", args[0], err)
	}
	c := &child{cmd: cmd}
	c.waiter.Go(func() {
		_ = cmd.Wait() // the state says the same
		end(fmt.Errorf("%s ended: %s: %s", args[0], cmd.ProcessState, bytes.TrimSpace(stderr.Bytes())))
	})
	return c, ctx, nil
}

// startController starts a controller.
func (f *field) startController(ctx context.Context, dir string) (*child, context.Context, error) {
	return f.start(ctx, "run", "--roles", "controller", "--partitions", strconv.Itoa(int(f.cfg.Partitions)), "--data-dir", dir)
}

// memory returns the resident memory of the process now, and the most that it was, in MiB.
func (c *child) memory() (resident, most float64, err error) {
	resident, most, ok := residentOf(c.cmd.Process.Pid)
	if !ok {
		return 0, 0, errors.New("the memory of another process is only known on Linux, and while it runs")
	}
	return resident, most, nil
}

// stop ends the process and waits for it.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	c.waiter.Wait()
}

// kill ends the process at once, with SIGKILL.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	c.waiter.Wait()
}
