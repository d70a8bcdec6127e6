package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// Exit codes of a command that runs a task.
const (
	ExitSkip = 10 // the task is skipped
	ExitFail = 20 // failed, without another attempt
)

const (
	maxStderr = 4 << 10         // kept of stderr, from its end
	execDelay = 2 * time.Second // after the kill, until its pipes are closed by force
)

// Exec makes a handler of a command: the payload is its stdin, its stdout the result (MaxResult). Environment, empty where the task
// has none:
//
//	QUIESCE_TASK_KIND ID BATCH RUN ROUND INDEX JOB STEP JOB_TYPE CUSTOMER ATTEMPT CONTENT_TYPE REFERENCE
//
// (each with the prefix QUIESCE_TASK_). Exit code 0 is ok, ExitSkip and ExitFail end the task, with the last line of
// stderr as the reason; anything else or a signal is a failed attempt. When the context ends, its process group is killed.
func Exec(command string, args ...string) Handler {
	return func(ctx context.Context, t *Task) (Result, error) {
		out := &limited{limit: MaxResult}
		if err := execute(ctx, t, out, command, args); err != nil {
			return Result{}, err
		}
		if out.over {
			return Result{}, Fail(fmt.Errorf("%s: more than %d bytes of result: return a reference", command, MaxResult))
		}
		if out.b.Len() == 0 {
			return Result{}, nil
		}
		return Result{Payload: &codecs.Payload{Data: out.b.Bytes()}}, nil
	}
}

// ExecSplitter makes a splitter of a command: each line on its stdout is the JSON of one task, see SplitLines. Input,
// environment and exit codes are those of Exec; a list counts only when the command ends with 0.
func ExecSplitter(command string, args ...string) Splitter {
	return func(ctx context.Context, t *Task, emit func(*codecs.ManifestTask) error) error {
		r, w := io.Pipe()
		listed := make(chan error, 1)
		go func() {
			err := lines(r, emit)
			r.CloseWithError(errors.Join(io.ErrClosedPipe, err)) // a command that goes on writing ends
			listed <- err
		}()
		err := execute(ctx, t, w, command, args)
		w.Close()
		if bad := <-listed; bad != nil {
			return bad
		}
		return err
	}
}

func execute(ctx context.Context, t *Task, out io.Writer, command string, args []string) error {
	cmd := exec.CommandContext(ctx, command, args...)
	errs := &tail{limit: maxStderr}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(t.Payload.GetData()), out, errs
	cmd.Env = append(os.Environ(), environment(t)...)
	cmd.WaitDelay = execDelay
	ownGroup(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrWaitDelay): // a child of it holds the pipes
		return fmt.Errorf("%s left a process behind: %w", command, err)
	case !errors.As(err, &exit):
		return fmt.Errorf("%s: %w", command, err)
	case exit.ExitCode() == ExitSkip:
		return Skip(errs.reason("skipped by " + command))
	case exit.ExitCode() == ExitFail:
		return Fail(errors.New(errs.reason(exit.String())))
	}
	return fmt.Errorf("%w: %s", exit, errs.reason("no message"))
}

func environment(t *Task) []string {
	var env []string
	add := func(name string, v any) { env = append(env, fmt.Sprintf("QUIESCE_TASK_%s=%v", name, v)) }
	for name, v := range map[string]string{"KIND": t.Kind, "ID": t.Id, "BATCH": t.Batch, "RUN": t.Run, "JOB": t.Job, "STEP": t.Step,
		"JOB_TYPE": t.JobType, "CUSTOMER": t.Customer, "CONTENT_TYPE": t.Payload.GetContentType(), "REFERENCE": t.Payload.GetReference()} {
		add(name, strings.ReplaceAll(v, "\x00", ""))
	}
	add("ROUND", max(t.Round, 1))
	add("INDEX", t.Index)
	add("ATTEMPT", max(t.Attempt, 1))
	return env
}

// limited keeps the first bytes.
type limited struct {
	b     bytes.Buffer
	limit int
	over  bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := l.limit - l.b.Len()
	l.over = l.over || len(p) > room
	l.b.Write(p[:min(len(p), room)])
	return len(p), nil
}

// tail keeps the last bytes.
type tail struct {
	b     []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if n := len(t.b) - t.limit; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

// reason is the last line that is not blank.
func (t *tail) reason(none string) string {
	all := strings.Split(strings.TrimSpace(string(t.b)), "\n")
	if last := strings.TrimSpace(all[len(all)-1]); last != "" {
		return toValid(last)
	}
	return none
}
