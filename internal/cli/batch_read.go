package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// reader makes a command that reads something about one batch.
func (a *app) reader(cmd *cobra.Command, read func(ctx context.Context, c *client.Client, id string) error) *cobra.Command {
	var r remote
	cmd.Args = args(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		c, err := r.batch(cmd, ids[0])
		if err != nil {
			return err
		}
		return patient(cmd.Context(), func() error { return read(cmd.Context(), c, ids[0]) })
	}
	r.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) batchShow() *cobra.Command {
	return a.reader(&cobra.Command{
		Use:     "show ID",
		Short:   "Show a batch: state, counts, stages",
		Example: "  quiesce batch show nightly-2026-11-30",
	}, func(ctx context.Context, c *client.Client, id string) error {
		b, err := c.Get(ctx, id)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(b)
		}
		a.printf("%s", batchText(b))
		return nil
	})
}

func (a *app) batchExplain() *cobra.Command {
	return a.reader(&cobra.Command{
		Use:     "explain ID",
		Short:   "Say why a batch has not ended, the most telling first",
		Example: "  quiesce batch explain nightly-2026-11-30",
	}, func(ctx context.Context, c *client.Client, id string) error {
		x, err := c.Explain(ctx, id)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(x)
		}
		return a.printExplain(x)
	})
}

func (a *app) printExplain(x *api.Explain) error {
	for _, l := range x.Lines {
		a.printf("%s\n", l)
	}
	for _, f := range x.Faults {
		a.printf("not looked at: %s\n", f)
	}
	if len(x.Stages) == 0 {
		return nil
	}
	a.printf("\n")
	rows := [][]string{{"STAGE", "TOPIC", "GROUP", "STATE", "MEMBERS", "LAG", "UNITS TO REPORT"}}
	for _, s := range x.Stages {
		rows = append(rows, []string{s.Stage, s.Topic, s.Group, s.GroupState, fmt.Sprint(s.Members), fmt.Sprint(s.Lag), fmt.Sprint(s.Remaining)})
	}
	return table(a.out, rows)
}

func (a *app) batchMissing() *cobra.Command {
	return a.reader(&cobra.Command{
		Use:     "missing ID",
		Short:   "Name what a batch still waits for: task indexes, or units",
		Example: "  quiesce batch missing nightly-2026-11-30",
	}, func(ctx context.Context, c *client.Client, id string) error {
		for m, err := range c.Missing(ctx, id) {
			if err != nil {
				return err
			}
			if err := a.printMissing(m); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) printMissing(m *api.Missing) error {
	if a.json {
		return a.printJSON(m)
	}
	for _, rg := range m.Ranges {
		line := rangeText(rg)
		if rg.Running {
			line += "  started"
		}
		for _, l := range rg.LastSeen {
			line += "  not reported by " + l.Stage + "/" + l.Topic
		}
		a.printf("%s\n", line)
	}
	for _, u := range m.Units {
		a.printf("unit %s/%s/%d\n", u.Stage, u.Topic, u.Partition)
	}
	return nil
}

func (a *app) batchTasks() *cobra.Command {
	var outcomes []string
	cmd := a.reader(&cobra.Command{
		Use:     "tasks ID",
		Short:   "List tasks with their outcomes and reasons, by index",
		Example: "  quiesce batch tasks nightly-2026-11-30 --outcome failed,lost",
	}, func(ctx context.Context, c *client.Client, id string) error {
		for t, err := range c.Tasks(ctx, id, outcomes...) {
			if err != nil {
				return err
			}
			if err := a.printTask(t); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().StringSliceVar(&outcomes, "outcome", nil, outcomesHelp)
	return cmd
}

func (a *app) printTask(t *api.Task) error {
	if a.json {
		return a.printJSON(t)
	}
	line := fmt.Sprintf("%d\t%s", t.Index, t.Outcome)
	if t.Reporter != "" {
		line += "\t" + t.Reporter
	}
	if t.Reason != "" {
		line += "\t" + t.Reason
	}
	a.printf("%s\n", line)
	return nil
}
