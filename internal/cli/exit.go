package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// Exit codes that are not about a batch; those are in package client.
const (
	ExitOK    = client.ExitCompleted
	ExitError = client.ExitError
	ExitUsage = client.ExitUsage
)

// exitError ends a command with a code. A nil err prints nothing: the result was already printed.
type exitError struct {
	code int
	err  error
	help string // command whose --help to point at
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error in the words of the command line.
func usage(cmd *cobra.Command, format string, v ...any) error {
	where := ""
	if cmd.HasParent() {
		where = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + ": "
	}
	return &exitError{code: ExitUsage, err: fmt.Errorf(where+format, v...), help: cmd.CommandPath()}
}
