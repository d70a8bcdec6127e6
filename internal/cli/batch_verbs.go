package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// verb is a command on a batch: its flags, and how they become arguments.
type verb struct {
	name, short, example string
	flags                func(*cobra.Command)
	args                 func(*cobra.Command) (map[string]any, error)
}

// batchVerbs makes one command for each verb.
func (a *app) batchVerbs() []*cobra.Command {
	verbs := []verb{
		{name: "cancel", short: "Cancel a batch: open tasks get the outcome cancelled", example: "quiesce batch cancel b-1 --reason 'wrong input'"},
		{name: "pause", short: "Pause a batch: nothing is released, and it does not end", example: "quiesce batch pause b-1"},
		{name: "resume", short: "Resume a paused batch", example: "quiesce batch resume b-1"},
		{name: "reevaluate", short: "Judge a batch again from its durable outcomes", example: "quiesce batch reevaluate b-1"},
		{name: "repair", short: "Lift the quarantine of a batch after a fix", example: "quiesce batch repair b-1"},
		{name: "gc", short: "Collect an ended batch now, not after its retention", example: "quiesce batch gc b-1"},
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
	var reason, key string
	var version uint64
	cmd := &cobra.Command{
		Use:     v.name + " ID",
		Short:   v.short,
		Example: "  " + v.example,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := batchID(cmd, &r, ids[0]); err != nil {
				return err
			}
			body := map[string]any{}
			if v.args != nil {
				var err error
				if body, err = v.args(cmd); err != nil {
					return err
				}
			}
			if reason != "" {
				body["reason"] = reason
			}
			if key == "" {
				key = ulid.Make().String()
			}
			req := request{method: http.MethodPost, path: batchPath(ids[0]) + ":" + v.name, key: key, body: body}
			if version > 0 {
				req.version = strconv.FormatUint(version, 10)
			}
			return a.command(cmd, &r, ids[0], req)
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "kept with the batch")
	f.StringVar(&key, "idempotency-key", "", "the same key acts once, however often it is sent (default: a new one)")
	f.Uint64Var(&version, "if-version", 0, "only if the batch still has this version (see batch show --json)")
	if v.flags != nil {
		v.flags(cmd)
	}
	a.jsonFlag(cmd)
	return cmd
}

// command sends a command and prints the row's own answer to it.
func (a *app) command(cmd *cobra.Command, r *remote, id string, req request) error {
	var accepted api.Accepted
	if err := r.do(cmd.Context(), req, &accepted); err != nil {
		return err
	}
	var c api.Command
	q := url.Values{"at_least": {accepted.Position.String()}}
	if err := r.get(cmd.Context(), batchPath(id)+"/commands/"+url.PathEscape(accepted.Command), q, &c); err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(c); err != nil {
			return err
		}
	} else if c.Applied {
		a.printf("%s applied to %s\n", c.Verb, id)
	}
	if !c.Applied {
		return fmt.Errorf("%s of batch %s had no effect: %s", c.Verb, id, c.Reason)
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
		args: func(cmd *cobra.Command) (map[string]any, error) {
			for _, o := range outcomes {
				switch o {
				case "failed", "timed_out", "lost", "cancelled":
				default:
					return nil, usage(cmd, "--outcome %q: failed, timed_out, lost or cancelled", o)
				}
			}
			return map[string]any{"outcomes": outcomes}, nil
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
		args: func(cmd *cobra.Command) (map[string]any, error) {
			deadlines := map[string]any{}
			for name, text := range map[string]string{"complete_by": completeBy, "seal_by": sealBy} {
				if text == "" {
					continue
				}
				ms, err := parseTime(text, time.Now())
				if err != nil {
					return nil, usage(cmd, "%w", err)
				}
				deadlines[name] = strconv.FormatInt(ms, 10)
			}
			if noProgress != 0 {
				deadlines["no_progress_for"] = strconv.FormatInt(noProgress.Milliseconds(), 10)
			}
			if len(deadlines) == 0 && onDeadline == "" {
				return nil, usage(cmd, "name a deadline")
			}
			body := map[string]any{"deadlines": deadlines}
			if onDeadline != "" {
				body["on_deadline"] = onDeadline
			}
			return body, nil
		}}
}

// parseTime reads RFC 3339 or +DURATION, in ms since the epoch.
func parseTime(s string, now time.Time) (int64, error) {
	if s[0] == '+' {
		d, err := time.ParseDuration(s[1:])
		if err != nil {
			return 0, fmt.Errorf("time %q: %w", s, err)
		}
		return now.Add(d).UnixMilli(), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("time %q: want RFC 3339 or +DURATION", s)
	}
	return t.UnixMilli(), nil
}

func policyVerb() verb {
	var p codecs.Policy
	return verb{name: "policy", short: "Change the failure policy of a batch", example: "quiesce batch policy b-1 --kind tolerate --tolerate 1% --min-sample 100",
		flags: func(cmd *cobra.Command) {
			f := cmd.Flags()
			f.StringVar(&p.Kind, "kind", "", "continue, fail_fast or tolerate")
			f.StringVar(&p.Tolerate, "tolerate", "", "failures that are tolerated: a number, or a percentage of the attempted tasks")
			f.Uint32Var(&p.MinSample, "min-sample", 0, "tasks attempted before a percentage is judged")
		},
		args: func(cmd *cobra.Command) (map[string]any, error) {
			switch {
			case p.Kind != "continue" && p.Kind != "fail_fast" && p.Kind != "tolerate":
				return nil, usage(cmd, "--kind %q: continue, fail_fast or tolerate", p.Kind)
			case (p.Kind == "tolerate") != (p.Tolerate != ""):
				return nil, usage(cmd, "--tolerate belongs to --kind tolerate")
			}
			return map[string]any{"policy": map[string]any{"kind": p.Kind, "tolerate": p.Tolerate, "min_sample": p.MinSample}}, nil
		}}
}
