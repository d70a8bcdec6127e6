package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// app is what every subcommand gets: the streams and the settings that all share.
type app struct {
	in       io.Reader
	out, err io.Writer
	json     bool
	verbose  bool
	config   string
	sections *sections // of the configuration file
	log      *slog.Logger
}

// Run executes one command line (without the program's name) and returns its exit code. It reads nothing but the
// streams, the environment and the files that the arguments name.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{in: stdin, out: stdout, err: stderr}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.exit(root.ExecuteContext(ctx))
}

// exit prints an error once, on stderr, and names its code.
func (a *app) exit(err error) int {
	if err == nil {
		return ExitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		fmt.Fprintf(a.err, "quiesce: %v\n", err)
		if errors.Is(err, client.ErrInvalid) {
			return ExitUsage
		}
		return ExitError
	}
	if e.err != nil {
		fmt.Fprintf(a.err, "quiesce: %v\n", e.err)
	}
	if e.code == ExitUsage && e.help != "" {
		fmt.Fprintf(a.err, "Run '%s --help' for its usage and an example.\n", e.help)
	}
	return e.code
}

// newRoot makes the whole command tree. It is made anew for each run: flags hold state.
func newRoot(a *app) *cobra.Command {
	root := group(&cobra.Command{
		Use:   "quiesce",
		Short: "Know, exactly once and within milliseconds, that a batch scattered over Kafka services is done",
		Example: `  quiesce demo                                  # index the Go toolchain's sources through a DAG of services
  quiesce dev                                   # broker, controller and dashboard in one process
  quiesce feed --batch b-1 --topology t.yaml tasks.jsonl --wait`,
	}, commands(a)...)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = false
	f := root.PersistentFlags()
	f.StringVar(&a.config, "config", "", "configuration file (default ./quiesce.yaml, then the user's configuration folder)")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log what happens inside, on stderr")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: ExitUsage, err: err, help: cmd.CommandPath()}
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if a.sections, err = settle(cmd, a.config); err != nil {
			return &exitError{code: ExitUsage, err: err, help: cmd.CommandPath()}
		}
		level := slog.LevelWarn
		if a.verbose {
			level = slog.LevelDebug
		}
		a.log = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
		return nil
	}
	return root
}

// group makes cmd a command that only holds others: alone, or with a word it does not know, it is a usage error.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subs...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Help()
			return usage(cmd, "name a command")
		}
		msg := fmt.Sprintf("unknown command %q", args[0])
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			msg += fmt.Sprintf(" (did you mean %q?)", s[0])
		}
		return usage(cmd, "%s", msg)
	}
	return cmd
}

// args wraps a check of positional arguments so that a wrong count is a usage error.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return usage(cmd, "%w", err)
		}
		return nil
	}
}
