package cli

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// jobVerb is a command on a job: its flags, and how they become arguments.
type jobVerb struct {
	name, short, example string
	flags                func(*cobra.Command)
	fill                 func(*cobra.Command, *codecs.JobCommandArgs) error
}

// jobVerbs makes one command for each verb.
func (a *app) jobVerbs() []*cobra.Command {
	verbs := []jobVerb{
		{name: "cancel", short: "Cancel a job: its open tasks get the outcome cancelled", example: "quiesce job cancel november --reason 'wrong input'"},
		{name: "pause", short: "Pause a job: nothing is released, no step begins, it does not end", example: "quiesce job pause november"},
		{name: "resume", short: "Resume a paused job", example: "quiesce job resume november"},
		{name: "redrive", short: "Open a new round of an ended job: what did not succeed runs again, the recorded tasks, not a new split",
			example: "quiesce job redrive november"},
		{name: "repair", short: "Take a quarantined job up again after a fix: its records are sent back from the dead letter", example: "quiesce job repair november"},
		extendJob(), policyJob(),
	}
	var out []*cobra.Command
	for _, v := range verbs {
		out = append(out, a.jobVerbCommand(v))
	}
	return out
}

func (a *app) jobVerbCommand(v jobVerb) *cobra.Command {
	var t jobTarget
	var reason string
	var o client.WriteOptions
	cmd := &cobra.Command{
		Use:     v.name + " ID",
		Short:   v.short,
		Example: "  " + v.example,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, id, err := t.job(cmd, ids[0])
			if err != nil {
				return err
			}
			body := &codecs.JobCommandArgs{Reason: reason}
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
			return a.commandJob(cmd, c, id, v.name, body, o)
		},
	}
	t.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "kept with the job")
	f.StringVar(&o.IdempotencyKey, "idempotency-key", "", "the same key acts once, however often it is sent (default: a new one)")
	f.Int64Var(&o.Version, "if-version", 0, "only if the job still has this version (see job show --json)")
	if v.flags != nil {
		v.flags(cmd)
	}
	a.jsonFlag(cmd)
	return cmd
}

// commandJob sends a command and prints the row's own answer to it.
func (a *app) commandJob(cmd *cobra.Command, c *client.Client, id client.JobID, verb string, body *codecs.JobCommandArgs, o client.WriteOptions) error {
	var done *api.Command
	var accepted *api.Accepted
	err := patient(cmd.Context(), func() (err error) {
		accepted, err = c.JobCommand(cmd.Context(), id, verb, body, o)
		if err == nil {
			done, err = c.JobAnswer(cmd.Context(), id, accepted.Command)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := a.answer(done, accepted.Repaired, verb, id.String()); err != nil {
		return err
	}
	if !done.Applied {
		return fmt.Errorf("%s of job %s had no effect: %s", verb, id, done.Reason)
	}
	return nil
}

func extendJob() jobVerb {
	var step, completeBy string
	var noProgress time.Duration
	return jobVerb{name: "extend", short: "Set deadlines of a job, or of one of its steps", example: "quiesce job extend november --complete-by +30m",
		flags: func(cmd *cobra.Command) {
			f := cmd.Flags()
			f.StringVar(&step, "step", "", "of this fan-out step (default: of the job)")
			f.StringVar(&completeBy, "complete-by", "", "when it has to be done: RFC 3339, or +DURATION from now")
			f.DurationVar(&noProgress, "no-progress-for", 0, "with --step: longest time without any progress")
		},
		fill: func(cmd *cobra.Command, a *codecs.JobCommandArgs) error {
			a.Step, a.Deadlines = step, &codecs.Deadlines{NoProgressFor: noProgress.Milliseconds()}
			var err error
			if a.Deadlines.CompleteBy, err = parseTime(completeBy, time.Now()); err != nil {
				return usage(cmd, "--complete-by: %w", err)
			}
			switch {
			case completeBy == "" && noProgress == 0:
				return usage(cmd, "name a deadline")
			case noProgress < 0 || noProgress > 0 && step == "":
				return usage(cmd, "--no-progress-for belongs to --step, and is positive")
			}
			return nil
		}}
}

func policyJob() jobVerb {
	var step string
	var window uint32
	p := &codecs.Policy{}
	return jobVerb{name: "policy", short: "Change the failure policy or the window of a fan-out step",
		example: "quiesce job policy november --step s2 --window 500",
		flags: func(cmd *cobra.Command) {
			f := cmd.Flags()
			f.StringVar(&step, "step", "", "the fan-out step")
			f.Uint32Var(&window, "window", 0, "tasks released at once")
			policyFlags(cmd, p)
		},
		fill: func(cmd *cobra.Command, a *codecs.JobCommandArgs) error {
			a.Step, a.Window = step, window
			if p.Kind == "" && p.Tolerate == "" && window > 0 {
				return nil // the window alone
			}
			if err := checkPolicy(cmd, p); err != nil {
				return err
			}
			a.Policy = p
			return nil
		}}
}
