package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// verb is a command on a batch: its flags, and how they become arguments.
type verb struct {
	name, short, example string
	flags                func(*cobra.Command)
	fill                 func(*cobra.Command, *codecs.CommandArgs) error
}

const verbGC = "gc"

// batchVerbs makes one command for each verb.
func (a *app) batchVerbs() []*cobra.Command {
	verbs := []verb{
		{name: "cancel", short: "Cancel a batch: open tasks get the outcome cancelled", example: "quiesce batch cancel b-1 --reason 'wrong input'"},
		{name: "pause", short: "Pause a batch: nothing is released, and it does not end", example: "quiesce batch pause b-1"},
		{name: "resume", short: "Resume a paused batch", example: "quiesce batch resume b-1"},
		{name: "reevaluate", short: "Judge a batch again from its durable outcomes", example: "quiesce batch reevaluate b-1"},
		{name: "repair", short: "Take a quarantined batch up again after a fix: its records are sent back from the dead letter", example: "quiesce batch repair b-1"},
		{name: verbGC, short: "Collect an ended batch now, not after its retention", example: "quiesce batch gc b-1"},
		redriveVerb(), extendVerb(), policyVerb(),
	}
	var out []*cobra.Command
	for _, v := range verbs {
		out = append(out, a.verbCommand(v))
	}
	return out
}

func (a *app) verbCommand(v verb) *cobra.Command {
	var r remote
	var reason string
	var o client.WriteOptions
	cmd := &cobra.Command{
		Use:     v.name + " ID",
		Short:   v.short,
		Example: "  " + v.example,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := r.batch(cmd, ids[0])
			if err != nil {
				return err
			}
			body := &codecs.CommandArgs{Reason: reason}
			if v.fill != nil {
				if err := v.fill(cmd, body); err != nil {
					return err
				}
			}
			if o.IdempotencyKey == "" {
				o.IdempotencyKey = ulid.Make().String()
			}
			if o.Version < 0 {
				return usage(cmd, "--if-version %d is negative", o.Version)
			}
			return a.command(cmd, c, ids[0], v.name, body, o)
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "kept with the batch")
	f.StringVar(&o.IdempotencyKey, "idempotency-key", "", "the same key acts once, however often it is sent (default: a new one)")
	f.Int64Var(&o.Version, "if-version", 0, "only if the batch still has this version (see batch show --json)")
	if v.flags != nil {
		v.flags(cmd)
	}
	a.jsonFlag(cmd)
	return cmd
}

// command sends a command and prints the row's own answer to it.
func (a *app) command(cmd *cobra.Command, c *client.Client, id, verb string, body *codecs.CommandArgs, o client.WriteOptions) error {
	var done *api.Command
	var accepted *api.Accepted
	err := patient(cmd.Context(), func() (err error) {
		accepted, err = c.Command(cmd.Context(), id, verb, body, o)
		if err == nil {
			done, err = c.Answer(cmd.Context(), id, accepted.Command)
		}
		if verb == verbGC && accepted != nil && errors.Is(err, client.ErrNotFound) {
			done, err = &api.Command{Command: accepted.Command, Verb: verb, Applied: true}, nil // its row is gone already
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := a.answer(done, accepted.Repaired, verb, id); err != nil {
		return err
	}
	if !done.Applied {
		return fmt.Errorf("%s of batch %s had no effect: %s", verb, id, done.Reason)
	}
	return nil
}

// answer prints the row's answer to a command, and what a repair did. Records that a repair refused are an error.
func (a *app) answer(done *api.Command, repaired *api.Repaired, verb, id string) error {
	switch {
	case a.json:
		err := a.printJSON(struct {
			*api.Command
			Repaired *api.Repaired `json:"repaired,omitempty"`
		}{done, repaired})
		if err != nil {
			return err
		}
	case done.Applied:
		a.printf("%s applied to %s\n", verb, id)
	}
	if repaired == nil {
		return nil
	}
	if !a.json {
		a.printf("%d records sent back, %d had been before, %d refused\n", repaired.Sent, repaired.Before, repaired.Refused)
	}
	for _, w := range repaired.Why {
		a.notef("not sent back: the record at offset %d: %s\n", w.Offset, w.Reason)
	}
	if repaired.Refused > 0 {
		return fmt.Errorf("%s of %s: %d records stay in the dead letter", verb, id, repaired.Refused)
	}
	return nil
}

func redriveVerb() verb {
	var outcomes []string
	return verb{name: "redrive", short: "Open a new round: failed, timed out, lost and cancelled tasks become pending again",
		example: "quiesce batch redrive b-1 --outcome failed",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringSliceVar(&outcomes, "outcome", nil, "only tasks with these outcomes: failed, timed_out, lost, cancelled (default: all four)")
		},
		fill: func(cmd *cobra.Command, a *codecs.CommandArgs) error {
			for _, o := range outcomes {
				switch o {
				case "failed", "timed_out", "lost", "cancelled":
				default:
					return usage(cmd, "--outcome %q: failed, timed_out, lost or cancelled", o)
				}
			}
			a.Outcomes = outcomes
			return nil
		}}
}

func extendVerb() verb {
	var completeBy, sealBy, onDeadline string
	var noProgress time.Duration
	return verb{name: "extend", short: "Set deadlines of a batch", example: "quiesce batch extend b-1 --complete-by +30m",
		flags: func(cmd *cobra.Command) {
			f := cmd.Flags()
			f.StringVar(&completeBy, "complete-by", "", "when it has to be done: RFC 3339, or +DURATION from now")
			f.StringVar(&sealBy, "seal-by", "", "when the number of tasks has to be known: RFC 3339, or +DURATION from now")
			f.DurationVar(&noProgress, "no-progress-for", 0, "longest time without any progress")
			f.StringVar(&onDeadline, "on-deadline", "", "expire (default) or close: open tasks time out and the batch completes with failures")
		},
		fill: func(cmd *cobra.Command, a *codecs.CommandArgs) error {
			a.Deadlines, a.OnDeadline = &codecs.Deadlines{NoProgressFor: noProgress.Milliseconds()}, onDeadline
			var err error
			if a.Deadlines.CompleteBy, err = parseTime(completeBy, time.Now()); err != nil {
				return usage(cmd, "--complete-by: %w", err)
			}
			if a.Deadlines.SealBy, err = parseTime(sealBy, time.Now()); err != nil {
				return usage(cmd, "--seal-by: %w", err)
			}
			if completeBy == "" && sealBy == "" && noProgress == 0 && onDeadline == "" {
				return usage(cmd, "name a deadline")
			}
			return nil
		}}
}

// parseTime reads RFC 3339 or +DURATION, in ms since the epoch; an empty text is 0.
func parseTime(s string, now time.Time) (int64, error) {
	if s == "" {
		return 0, nil
	}
	if s[0] == '+' {
		d, err := time.ParseDuration(s[1:])
		if err != nil {
			return 0, err
		}
		return now.Add(d).UnixMilli(), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("%q: want RFC 3339 or +DURATION", s)
	}
	return t.UnixMilli(), nil
}

func policyVerb() verb {
	p := &codecs.Policy{}
	return verb{name: "policy", short: "Change the failure policy of a batch", example: "quiesce batch policy b-1 --kind tolerate --tolerate 1% --min-sample 100",
		flags: func(cmd *cobra.Command) { policyFlags(cmd, p) },
		fill: func(cmd *cobra.Command, a *codecs.CommandArgs) error {
			a.Policy = p
			return checkPolicy(cmd, p)
		}}
}

func policyFlags(cmd *cobra.Command, p *codecs.Policy) {
	f := cmd.Flags()
	f.StringVar(&p.Kind, "kind", "", "continue, fail_fast or tolerate")
	f.StringVar(&p.Tolerate, "tolerate", "", "failures that are tolerated: a number, or a percentage of the attempted tasks")
	f.Uint32Var(&p.MinSample, "min-sample", 0, "tasks attempted before a percentage is judged")
}

func checkPolicy(cmd *cobra.Command, p *codecs.Policy) error {
	switch {
	case p.Kind != "continue" && p.Kind != "fail_fast" && p.Kind != "tolerate":
		return usage(cmd, "--kind %q: continue, fail_fast or tolerate", p.Kind)
	case (p.Kind == "tolerate") != (p.Tolerate != ""):
		return usage(cmd, "--tolerate belongs to --kind tolerate")
	}
	return nil
}
