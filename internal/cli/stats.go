package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/processors/stats"
)

func (a *app) statsCommand() *cobra.Command {
	var r remote
	var f client.StatsFilter
	var from, to string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Statistics by job type, step, queue and day: outcomes, durations, throughput, cost",
		Long: `Statistics by job type, step, queue and day (UTC): how many ended how, attempts, quantiles of the time that attempts ran
and waited in the queue, throughput, worker-seconds. The last seven days, unless --from and --to say otherwise.`,
		Example: `  quiesce stats --type invoices
  quiesce stats --from 2026-11-01 --to 2026-11-30 --total --json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			if f.From, err = parseDay(cmd, "--from", from); err != nil {
				return err
			}
			if f.To, err = parseDay(cmd, "--to", to); err != nil {
				return err
			}
			return a.stats(cmd, c, f)
		},
	}
	r.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.Type, "type", "", "only this job type")
	fl.StringVar(&f.Step, "step", "", "only this step")
	fl.StringVar(&f.Queue, "queue", "", "only this queue")
	fl.StringVar(&from, "from", "", "first day, YYYY-MM-DD in UTC")
	fl.StringVar(&to, "to", "", "last day, YYYY-MM-DD in UTC")
	fl.BoolVar(&f.Total, "total", false, "all days in one row")
	a.jsonFlag(cmd)
	return cmd
}

func parseDay(cmd *cobra.Command, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return t, usage(cmd, "%s %q: want YYYY-MM-DD", flag, text)
	}
	return t, nil
}

func (a *app) stats(cmd *cobra.Command, c *client.Client, f client.StatsFilter) error {
	ctx := cmd.Context()
	if err := patient(ctx, func() error { return c.Ready(ctx) }); err != nil {
		return err
	}
	rows := [][]string{{"DAY", "TYPE", "STEP", "QUEUE", "STARTED", "ENDED", "TASKS", "OK", "NOT OK", "ATTEMPTS", "RUN P50", "RUN P99", "WAIT P99", "TASKS/S", "WORKER-S"}}
	for s, err := range c.Stats(ctx, f) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(s); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, statsLine(s))
	}
	if a.json {
		return nil
	}
	return table(a.out, rows)
}

func statsLine(s *stats.Snapshot) []string {
	e, t := s.Ended, s.Tasks
	ended := e.Completed + e.CompletedWithFailures + e.Failed + e.Cancelled + e.Expired + e.Inconsistent
	day := s.Day
	if day == "" {
		day = "all"
	}
	return []string{day, orDash(s.Type), orDash(s.Step), orDash(s.Queue), fmt.Sprint(s.Started), fmt.Sprint(ended),
		fmt.Sprint(t.Ended), fmt.Sprint(t.OK), fmt.Sprint(t.Ended - t.OK - t.Skipped), fmt.Sprint(t.Attempts),
		millis(s.Run, func(q *stats.Times) float64 { return q.P50 }), millis(s.Run, func(q *stats.Times) float64 { return q.P99 }),
		millis(s.QueueWait, func(q *stats.Times) float64 { return q.P99 }), fmt.Sprintf("%.1f", s.Throughput), fmt.Sprintf("%.1f", s.WorkerSeconds)}
}

// millis prints a quantile, in ms; - where nothing was timed.
func millis(t *stats.Times, of func(*stats.Times) float64) string {
	if t == nil || t.Count == 0 {
		return "-"
	}
	return time.Duration(of(t) * float64(time.Millisecond)).Round(100 * time.Microsecond).String()
}
