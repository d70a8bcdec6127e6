package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/processors/worker"
)

func (a *app) sizeCommand() *cobra.Command {
	var r remote
	var l worker.Load
	var step string
	cmd := &cobra.Command{
		Use:   "size TASKS",
		Short: "How many workers and partitions a step needs for its deadline, and what more time or less would cost",
		Long: `How many workers (tasks at once, over all processes) and partitions a step of so many tasks needs to meet its deadline,
with retries and crashes of workers, and the cost curve beside it. The time of a task is given (--run), or measured: the
mean of what the statistics of a step say (--step TYPE/STEP, through a sidecar).`,
		Example: `  quiesce size 10000 --run 60s --deadline 90m --retries 5% --crashes 1%
  quiesce size 10000 --step invoices/s2 --deadline 90m`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, texts []string) error {
			n, err := strconv.Atoi(texts[0])
			if err != nil || n < 1 {
				return usage(cmd, "%q is no number of tasks", texts[0])
			}
			l.Tasks = n
			if (l.Run == 0) == (step == "") {
				return usage(cmd, "name one of --run and --step")
			}
			if step != "" {
				if err := a.measured(cmd, &r, step, &l); err != nil {
					return err
				}
			}
			return a.size(cmd, l)
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&l.Run, "run", 0, "time of one attempt")
	f.StringVar(&step, "step", "", "measure it: TYPE/STEP of the last seven days")
	f.DurationVar(&l.Deadline, "deadline", time.Hour, "for all tasks, from the first release")
	f.Var((*share)(&l.Retries), "retries", "attempts that fail and are tried again: a share, 0.05 or 5%")
	f.Var((*share)(&l.Crashes), "crashes", "attempts that take their worker down: a share")
	f.DurationVar(&l.Backoff, "backoff", time.Second, "before another attempt")
	f.DurationVar(&l.Outage, "outage", time.Minute, "until the task of a crashed worker is with another one")
	a.jsonFlag(cmd)
	return cmd
}

// share is a flag of 0.05 or 5%.
type share float64

// String implements pflag.Value.
func (s *share) String() string { return fmt.Sprintf("%g%%", float64(*s)*100) }

// Type implements pflag.Value.
func (s *share) Type() string { return "share" }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	num, scale := text, 1.0
	if n := len(text); n > 0 && text[n-1] == '%' {
		num, scale = text[:n-1], 100
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || !(v >= 0 && v < scale) {
		return fmt.Errorf("want a share from 0 up to, not including, 1: 0.05 or 5%%")
	}
	*s = share(v / scale)
	return nil
}

// sized is one point of the cost curve.
type sized struct {
	Deadline   string  `json:"deadline"`
	Workers    int     `json:"workers"`
	LowerBound int     `json:"lower_bound"` // without faults and overhead
	Partitions int32   `json:"partitions"`
	Reserved   float64 `json:"reserved_worker_hours"` // workers x deadline
	Reason     string  `json:"reason,omitempty"`      // why there is no plan
}

// size prints the plan and its neighbours.
func (a *app) size(cmd *cobra.Command, l worker.Load) error {
	plan, err := worker.Size(l)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	if a.json {
		return a.printJSON(point(l, l.Deadline))
	}
	a.printf("%d tasks of %s within %s: %s\n\n", l.Tasks, l.Run, l.Deadline, plan)
	rows := [][]string{{"DEADLINE", "WORKERS", "LOWER BOUND", "PARTITIONS", "RESERVED WORKER-HOURS"}}
	for _, f := range []float64{0.5, 0.75, 1, 1.5, 2, 4} {
		p := point(l, time.Duration(f*float64(l.Deadline)))
		if p.Reason != "" {
			rows = append(rows, []string{p.Deadline, "-", "-", "-", p.Reason})
			continue
		}
		rows = append(rows, []string{p.Deadline, fmt.Sprint(p.Workers), fmt.Sprint(p.LowerBound), fmt.Sprint(p.Partitions), fmt.Sprintf("%.1f", p.Reserved)})
	}
	return table(a.out, rows)
}

func point(l worker.Load, deadline time.Duration) sized {
	l.Deadline = deadline
	p, err := worker.Size(l)
	if err != nil {
		return sized{Deadline: deadline.String(), Reason: err.Error()}
	}
	return sized{Deadline: deadline.String(), Workers: p.Workers, LowerBound: p.LowerBound, Partitions: p.Partitions,
		Reserved: float64(p.Workers) * deadline.Hours()}
}

// measured takes the time of an attempt, and the share of retries unless it is given, from the statistics.
func (a *app) measured(cmd *cobra.Command, r *remote, step string, l *worker.Load) error {
	c, err := r.client(cmd)
	if err != nil {
		return err
	}
	typ, name, ok := strings.Cut(step, "/")
	if !ok || typ == "" || name == "" {
		return usage(cmd, "--step %q: want TYPE/STEP", step)
	}
	if err := patient(cmd.Context(), func() error { return c.Ready(cmd.Context()) }); err != nil {
		return err
	}
	for s, err := range c.Stats(cmd.Context(), client.StatsFilter{Type: typ, Step: name, Total: true}) {
		if err != nil {
			return err
		}
		if s.Run == nil || s.Run.Count == 0 || s.Tasks.Ended == 0 {
			continue
		}
		l.Run = time.Duration(s.WorkerSeconds / float64(s.Run.Count) * float64(time.Second))
		if l.Retries == 0 && s.Tasks.Attempts > s.Tasks.Ended {
			l.Retries = float64(s.Tasks.Attempts-s.Tasks.Ended) / float64(s.Tasks.Attempts)
		}
		a.notef("measured: %s in the mean over %d attempts, %.2g%% of them tried again\n", l.Run, s.Run.Count, l.Retries*100)
		return nil
	}
	return fmt.Errorf("no task of %s was timed in the last seven days: name --run", step)
}
