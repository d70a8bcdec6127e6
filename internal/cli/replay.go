package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/node"
	"github.com/quiesce/quiesce/internal/replay"
	"github.com/quiesce/quiesce/processors"
)

func (a *app) replayCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "replay",
		Short: "Record a machine's log, fold it again, compare it with the live table, or reprocess it",
		Example: `  quiesce replay record --out control.jsonl
  quiesce replay fold control.jsonl --expect rows.txt
  quiesce replay diff`,
	}, a.replayRecord(), a.replayFold(), a.replayDiff(), a.replayInto())
}

// log is where records come from: a recording, or the live input of a role.
type log struct {
	connection
	jobs jobSettings
	role string
}

func (l *log) flags(cmd *cobra.Command) {
	l.connection.flags(cmd)
	l.jobs.flags(cmd, 128)
	cmd.Flags().StringVar(&l.role, "role", node.RoleController, "whose log: "+strings.Join(node.MachineRoles(), ", ")+"; the workflow's needs the flags of its deployment")
}

// machine makes the machine of the role, as the deployment's flags and configuration have it.
func (l *log) machine(cmd *cobra.Command, a *app) (processors.Machine, error) {
	cfg := node.Config{}
	var err error
	if cfg.Jobs, err = l.jobs.load(cmd); err != nil {
		return nil, err
	}
	if cfg.Notify, err = a.sections.notify(); err != nil {
		return nil, usage(cmd, "configuration: %w", err)
	}
	m, err := cfg.Machine(l.role)
	if err != nil {
		return nil, usage(cmd, "--role: %w", err)
	}
	return m, nil
}

// open opens the recording, or without one the live topic.
func (l *log) open(cmd *cobra.Command, a *app, files []string) (replay.Source, processors.Machine, error) {
	if err := l.validate(cmd); err != nil {
		return nil, nil, err
	}
	m, err := l.machine(cmd, a)
	if err != nil {
		return nil, nil, err
	}
	if len(files) > 0 {
		f, err := replay.OpenFile(files[0])
		if err != nil {
			return nil, nil, usage(cmd, "%w", err)
		}
		return f, m, nil
	}
	live, err := replay.OpenLive(cmd.Context(), replay.LiveConfig{Client: l.options(), Topic: codecs.Topic(l.prefix, m.Input())})
	return live, m, err
}

// counting shows how many records were read.
func (a *app) counting(src replay.Source) (progress func(int64), done func()) {
	bars := newBars(a.err)
	total := int64(0)
	if l, ok := src.(*replay.Live); ok {
		total = l.Len()
	}
	line := bars.add("records", total)
	return func(n int64) { line.set(n, max(total, n)) }, func() { bars.finish(line) }
}

func (a *app) replayRecord() *cobra.Command {
	var l log
	var out string
	cmd := &cobra.Command{
		Use:     "record",
		Short:   "Write the live log of a role to a file of JSON lines",
		Example: "  quiesce replay record --bootstrap-server kafka-1:9092 --out control.jsonl",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage(cmd, "--out is missing")
			}
			src, _, err := l.open(cmd, a, nil)
			if err != nil {
				return err
			}
			progress, done := a.counting(src)
			n, err := record(cmd.Context(), src, out, progress)
			done()
			if err != nil {
				return err
			}
			a.notef("%d records of %s in %s\n", n, src.Topic().Topic, out)
			return nil
		},
	}
	l.flags(cmd)
	cmd.Flags().StringVar(&out, "out", "", "file to write (required)")
	return cmd
}

func record(ctx context.Context, src replay.Source, out string, progress func(int64)) (n int64, err error) {
	f, err := os.Create(out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return replay.Record(ctx, src, f, progress)
}

func (a *app) replayFold() *cobra.Command {
	var l log
	var expect, transcript string
	cmd := &cobra.Command{
		Use:   "fold [FILE]",
		Short: "Apply a recording, or the live log, to empty rows and print them",
		Example: `  quiesce replay fold control.jsonl > rows.txt
  quiesce replay fold control.jsonl --expect rows.txt --transcript -`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			src, m, err := l.open(cmd, a, files)
			if err != nil {
				return err
			}
			w, closeTranscript, err := a.openOut(transcript)
			if err != nil {
				return err
			}
			progress, done := a.counting(src)
			state, err := replay.Fold(cmd.Context(), replay.FoldConfig{Machine: m, Source: src, Prefix: l.prefix, Transcript: w, Progress: progress})
			done()
			if err := errors.Join(err, closeTranscript()); err != nil {
				return err
			}
			a.notef("%s\n", state.Summary())
			if expect != "" {
				return a.expect(cmd, state, expect)
			}
			return state.Print(a.out)
		},
	}
	l.flags(cmd)
	cmd.Flags().StringVar(&expect, "expect", "", "file with rows that an earlier fold printed: print the differences, exit 1 if there are any")
	cmd.Flags().StringVar(&transcript, "transcript", "", "file for what was read and answered (-: standard output)")
	return cmd
}

// openOut opens a file to write, or standard output for -; an empty name gives nil.
func (a *app) openOut(name string) (io.Writer, func() error, error) {
	switch name {
	case "":
		return nil, func() error { return nil }, nil
	case "-":
		return a.out, func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

func (a *app) expect(cmd *cobra.Command, state *replay.State, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return usage(cmd, "--expect: %v", err)
	}
	defer f.Close()
	lines, err := state.Compare(f)
	if err != nil {
		return err
	}
	for _, line := range lines {
		a.printf("%s\n", line)
	}
	if len(lines) > 0 {
		return fmt.Errorf("%d lines differ from %s", len(lines), name)
	}
	return nil
}

func (a *app) replayDiff() *cobra.Command {
	var l log
	cmd := &cobra.Command{
		Use:     "diff",
		Short:   "Fold the live log and report rows of the live table that it does not explain; exit 1 if there are any",
		Example: "  quiesce replay diff --bootstrap-server kafka-1:9092 --json",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.validate(cmd); err != nil {
				return err
			}
			m, err := l.machine(cmd, a)
			if err != nil {
				return err
			}
			progress, done := a.counting(nil)
			report, err := replay.Diff(cmd.Context(), replay.DiffConfig{Client: l.options(), Prefix: l.prefix, Machine: m, Progress: progress})
			done()
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(report)
			} else {
				a.printf("%s", report.Text())
			}
			if err == nil && !report.OK() {
				err = fmt.Errorf("%d rows differ from their log", len(report.Altered))
			}
			return err
		},
	}
	l.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) replayInto() *cobra.Command {
	var l log
	var to string
	cmd := &cobra.Command{
		Use:     "into PREFIX [FILE]",
		Short:   "Send a recording, or the live log, into another deployment, which reprocesses it",
		Example: "  quiesce replay into trial control.jsonl",
		Args:    args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, words []string) error {
			to = words[0]
			if err := codecs.ValidID("prefix", to); err != nil {
				return usage(cmd, "%w", err)
			}
			if to == l.prefix && len(words) == 1 {
				return usage(cmd, "a log cannot be replayed into itself")
			}
			src, m, err := l.open(cmd, a, words[1:])
			if err != nil {
				return err
			}
			progress, done := a.counting(src)
			n, err := replay.Into(cmd.Context(), replay.IntoConfig{Source: src, Client: l.options(), Topic: codecs.Topic(to, m.Input()), Progress: progress})
			done()
			if err != nil {
				return err
			}
			return a.printJSON(n)
		},
	}
	l.flags(cmd)
	return cmd
}
