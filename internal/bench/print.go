package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// column is a figure in a table.
type column struct {
	name string
	of   func(*Result) string
}

// layout is the table of some scenarios.
type layout struct {
	scenarios []string
	columns   []column
}

var (
	tasks   = column{"tasks", func(r *Result) string { return number(float64(r.N)) }}
	seconds = column{"seconds", func(r *Result) string { return number(r.Seconds) }}
	perS    = column{"completions/s", func(r *Result) string { return number(r.CompletionsPerS) }}
	p50     = column{"p50 ms", func(r *Result) string { return number(r.P50ms) }}
	p99     = column{"p99 ms", func(r *Result) string { return number(r.P99ms) }}
	cpu     = column{"CPU s/M", func(r *Result) string { return number(r.CPUPerMillion) }}
	memory  = column{"RSS", func(r *Result) string { return mib(r.RSSMiB) }}
	others  = column{"other CPU", func(r *Result) string { return fmt.Sprintf("%.0f %%", r.ForeignCPUPercent) }}
)

var layouts = []layout{
	{[]string{Latency, Ingest, Hot}, []column{tasks,
		{"k", func(r *Result) string { return number(float64(r.K)) }},
		{"active", func(r *Result) string { return number(float64(r.Active)) }},
		{"order", func(r *Result) string { return r.Order }},
		seconds, perS,
		{"x floor", func(r *Result) string { return number(r.RatioFloor) }},
		{"x plain goka", func(r *Result) string { return number(r.RatioPlain) }},
		{"x raw", func(r *Result) string { return number(r.RatioRaw) }},
		p50, p99,
		{"changelog", func(r *Result) string { return size(r.ChangelogBytes) }},
		cpu, memory, others}},
	{[]string{Recovery}, []column{
		{"rows", func(r *Result) string { return number(float64(r.Rows)) }},
		seconds,
		{"rows/s", func(r *Result) string { return number(r.RowsPerS) }},
		{"same disk s", func(r *Result) string { return number(r.SameDiskSeconds) }},
		cpu, memory, others}},
	{[]string{Memory}, []column{
		{"open", func(r *Result) string { return number(float64(r.Active)) }},
		{"collected", func(r *Result) string { return number(float64(r.N)) }},
		{"idle", func(r *Result) string { return mib(r.IdleMiB) }},
		{"open taken over", func(r *Result) string { return mib(r.TakenOverMiB) }},
		{"all in use", func(r *Result) string { return mib(r.OpenMiB) }},
		{"most", func(r *Result) string { return mib(r.MostMiB) }},
		{"bytes an open one", func(r *Result) string { return number(r.BytesPerOpen) }},
		{"with collected", func(r *Result) string { return mib(r.CollectedMiB) }},
		others}},
	{[]string{Beside}, []column{tasks,
		{"hot/s", func(r *Result) string { return number(r.HotPerS) }},
		{"fed/s", func(r *Result) string { return number(r.FedPerS) }},
		{"alone p50 ms", func(r *Result) string { return number(r.AloneP50ms) }},
		{"p99 ms", func(r *Result) string { return number(r.AloneP99ms) }},
		{"other partitions p50 ms", func(r *Result) string { return number(r.P50ms) }},
		{"p99 ms", func(r *Result) string { return number(r.P99ms) }},
		{"same p50 ms", func(r *Result) string { return number(r.SameP50ms) }},
		{"p99 ms", func(r *Result) string { return number(r.SameP99ms) }},
		{"behind a backlog, other ms", func(r *Result) string { return number(r.BacklogOtherMs) }},
		{"same ms", func(r *Result) string { return number(r.BacklogSameMs) }},
		others}},
	{[]string{Fanout}, []column{
		{"jobs", func(r *Result) string { return number(float64(r.Jobs)) }},
		{"tasks a job", func(r *Result) string { return number(float64(r.N / r.Jobs)) }},
		seconds, perS,
		{"CPU s/10k", func(r *Result) string { return number(r.CPUPer10k) }},
		p50, p99,
		{"to job p50 ms", func(r *Result) string { return number(r.JobP50ms) }},
		{"first start ms", func(r *Result) string { return number(r.FirstStartMs) }},
		memory, others}},
}

// Table prints results for people: one table for each kind of scenario.
func Table(w io.Writer, results []Result) error {
	for _, l := range layouts {
		if err := l.print(w, results); err != nil {
			return err
		}
	}
	return nil
}

func (l *layout) print(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	begun := false
	for i := range results {
		r := &results[i]
		if !slices.Contains(l.scenarios, r.Scenario) {
			continue
		}
		names, cells := []string{"scenario"}, []string{r.Scenario}
		for _, c := range l.columns {
			names, cells = append(names, c.name), append(cells, c.of(r))
		}
		if !begun {
			begun = true
			fmt.Fprintln(t, strings.Join(names, "\t")+"\t")
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	return t.Flush()
}

func mib(x float64) string { return size(int64(x * (1 << 20))) }

func number(x float64) string {
	switch {
	case x == 0:
		return "-"
	case x >= 1e6:
		return fmt.Sprintf("%.3gM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.3gk", x/1e3)
	}
	return fmt.Sprintf("%.3g", x)
}

func size(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n >= 1<<20:
		return fmt.Sprintf("%.3g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.3g KiB", float64(n)/(1<<10))
}
