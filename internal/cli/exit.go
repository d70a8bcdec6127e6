package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
)

// Exit codes.
const (
	ExitOK           = 0
	ExitError        = 1
	ExitUsage        = 2
	ExitWithFailures = 3
	ExitFailed       = 4
	ExitCancelled    = 5
	ExitExpired      = 6
	ExitInconsistent = 7
	ExitTimeout      = 124
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

// ExitCode is the exit code of a batch that ended. attempted accepts tasks whose outcome no stage reports (modes
// markers and observe prove only that every task was attempted).
func ExitCode(state codecs.State_Code, unknown uint32, attempted bool) int {
	switch state {
	case codecs.State_completed:
		if unknown > 0 && !attempted {
			return ExitError
		}
		return ExitOK
	case codecs.State_completed_with_failures:
		return ExitWithFailures
	case codecs.State_failed:
		return ExitFailed
	case codecs.State_cancelled:
		return ExitCancelled
	case codecs.State_expired:
		return ExitExpired
	case codecs.State_inconsistent:
		return ExitInconsistent
	}
	return ExitError
}
