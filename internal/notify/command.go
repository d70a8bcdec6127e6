package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	machine "github.com/quiesce/quiesce/processors/notify"
)

// exitFail is the exit code of a command that says: not again.
const exitFail = 20

// command runs one of the commands that are enabled here.
func (d *Deliverer) command(ctx context.Context, n *machine.Delivery, name string) error {
	argv, ok := d.cfg.Commands[name]
	if !ok {
		return never(fmt.Errorf("command %q is not enabled here", name))
	}
	in, err := json.Marshal(n)
	if err != nil {
		return never(err)
	}
	var said tail
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Stdin = bytes.NewReader(in)
	c.Stderr = &said
	c.Env = append(os.Environ(), "QUIESCE_EVENT_ID="+n.ID, "QUIESCE_EVENT_TYPE="+n.Type, "QUIESCE_EVENT_SUBJECT="+n.Subject)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	err = c.Run()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("command %s: %w: %q", name, err, strings.ToValidUTF8(string(said.last), "?"))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitFail {
		return never(err)
	}
	return later(err)
}

// tail keeps the last bytes that were written.
type tail struct{ last []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b[max(0, len(b)-maxAnswer):]...)
	t.last = t.last[max(0, len(t.last)-maxAnswer):]
	return len(b), nil
}
