//go:build unix

package apache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Run runs a command beside Apache Kafka and returns its exit code. With a bootstrap address it uses the broker there;
// else it starts a cluster and closes it afterwards, also when the command fails or ctx ends (the command then gets
// SIGTERM, and SIGKILL after 10 s). What it does goes to notes.
func Run(ctx context.Context, notes io.Writer, bootstrap string, cfg Config, command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("no command to run beside Apache Kafka")
	}
	starts := ""
	if bootstrap == "" {
		in, err := Find(ctx)
		if err != nil {
			return 1, fmt.Errorf("%w\nOr run against a broker that is there: make test-kafka BOOTSTRAP=host:port", err)
		}
		start := time.Now()
		cluster, err := Start(ctx, in, cfg)
		if err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, cluster.Close()) }()
		bootstrap = cluster.Bootstrap()
		fmt.Fprintf(notes, "Apache Kafka from %s runs on %s (started in %.1fs)\n", in.Libs, bootstrap, time.Since(start).Seconds())
		starts = "1"
	} else {
		fmt.Fprintf(notes, "using the broker on %s\n", bootstrap)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), EnvBootstrap+"="+bootstrap, EnvStarts+"="+starts)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return max(exit.ExitCode(), 1), nil // a signal has no code
	}
	if err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	return 0, nil
}
