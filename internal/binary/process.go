package binary

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long WaitFor and Wait wait before the test fails.
const Patience = time.Minute

// Result is what a finished binary leaves.
type Result struct {
	Code           int // of its exit; -1 after a signal
	Stdout, Stderr string
}

// Run runs the binary to its end.
func Run(t testing.TB, stdin string, args ...string) Result {
	t.Helper()
	p := start(t, strings.NewReader(stdin), args)
	code := p.Wait()
	return Result{Code: code, Stdout: p.stdout.String(), Stderr: p.stderr.String()}
}

// Process is a binary that runs beside the test. Its methods are for the test's goroutine.
type Process struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr *output
	done           chan struct{}
}

// Start starts the binary; it is killed when the test ends. Its output is shown when the test fails.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	return start(t, strings.NewReader(""), args)
}

func start(t testing.TB, stdin *strings.Reader, args []string) *Process {
	t.Helper()
	changed := make(chan struct{}, 1)
	p := &Process{t: t, cmd: exec.Command(Path(t), args...), done: make(chan struct{})}
	p.stdout, p.stderr = &output{changed: changed}, &output{changed: changed}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, p.stdout, p.stderr
	p.cmd.Env = environment(t.TempDir())
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start quiesce: %v", err)
	}
	go func() { // ends with the process, which the clean-up below waits for
		_ = p.cmd.Wait() // the code is read from the process state
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		if t.Failed() {
			t.Logf("quiesce %s\n%s%s", strings.Join(args, " "), p.stdout, p.stderr)
		}
	})
	return p
}

// environment is this process's, with another home and without QUIESCE_ settings.
func environment(home string) (env []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "QUIESCE_") && !strings.HasPrefix(kv, "XDG_") {
			env = append(env, kv)
		}
	}
	return append(env, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
}

// WaitFor returns when the text is in the output (stdout or stderr), and fails the test when the binary ends without it.
func (p *Process) WaitFor(text string) {
	p.t.Helper()
	timeout := time.After(Patience)
	for {
		ended := false
		select {
		case <-p.done:
			ended = true
		default:
		}
		if strings.Contains(p.stdout.String(), text) || strings.Contains(p.stderr.String(), text) {
			return
		}
		if ended {
			p.t.Fatalf("quiesce ended (%s) without saying %q", p.cmd.ProcessState, text)
		}
		select {
		case <-p.done:
		case <-p.stdout.changed:
		case <-timeout:
			p.t.Fatalf("quiesce did not say %q within %s", text, Patience)
		}
	}
}

// Signal sends a signal: os.Interrupt, syscall.SIGTERM, os.Kill, ...
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", s, err)
	}
}

// Kill ends it as kill -9 does, and waits. It may have ended already.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.done
}

// Wait returns the exit code, -1 after a signal that the binary did not catch.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(Patience):
		p.t.Fatalf("quiesce did not end within %s", Patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stdout is what it has written so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr is what it has written so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// output collects a stream and tells when there is more.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // capacity 1, shared by both streams
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
