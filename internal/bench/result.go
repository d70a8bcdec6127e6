package bench

import (
	"fmt"
	"io"
	"math"
	"sort"
	"text/tabwriter"
	"time"
)

// Result is one line of a benchmark. Fields that do not apply are left out.
type Result struct {
	Scenario          string  `json:"scenario"`
	N                 int     `json:"n"`
	K                 int     `json:"k,omitempty"`
	Batches           int     `json:"batches,omitempty"`
	Active            int     `json:"active,omitempty"`
	Order             string  `json:"order,omitempty"`
	Partitions        int32   `json:"partitions"`
	Broker            string  `json:"broker"` // embedded or the address
	Seconds           float64 `json:"seconds,omitempty"`
	CompletionsPerS   float64 `json:"completions_per_s,omitempty"`
	RatioFloor        float64 `json:"ratio_floor,omitempty"`
	RatioPlain        float64 `json:"ratio_plain,omitempty"`
	RatioRaw          float64 `json:"ratio_raw,omitempty"`
	P50ms             float64 `json:"p50_ms,omitempty"`
	P99ms             float64 `json:"p99_ms,omitempty"`
	MaxMs             float64 `json:"max_ms,omitempty"`
	Rows              int     `json:"rows,omitempty"` // of the table
	SameDiskSeconds   float64 `json:"same_disk_seconds,omitempty"`
	ChangelogBytes    int64   `json:"changelog_bytes,omitempty"`
	ChangelogRows     int64   `json:"changelog_rows,omitempty"`
	RowsPerS          float64 `json:"rows_per_s,omitempty"`
	RSSMiB            float64 `json:"rss_mib,omitempty"`
	CPUPerMillion     float64 `json:"cpu_s_per_million,omitempty"`
	ForeignCPUPercent float64 `json:"foreign_cpu_percent"`
	Command           string  `json:"command"`
}

// round keeps three significant digits: more would pretend a precision that the machine does not have.
func round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	p := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*p) / p
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return round(a / b)
}

// quantile returns the q-quantile of the durations in ms. It sorts them.
func quantile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	i := int(math.Ceil(q*float64(len(d)))) - 1
	return round(float64(d[max(i, 0)]) / float64(time.Millisecond))
}

// Table prints results for people.
func Table(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tn\tk\torder\tseconds\tcompletions/s\tx floor\tx plain goka\tx raw\tp50 ms\tp99 ms\tchangelog\tCPU s/M\tother CPU\t")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f %%\t\n", r.Scenario, r.N, number(float64(r.K)), r.Order,
			number(r.Seconds), number(r.CompletionsPerS), number(r.RatioFloor), number(r.RatioPlain), number(r.RatioRaw),
			number(r.P50ms), number(r.P99ms), bytes(r.ChangelogBytes), number(r.CPUPerMillion), r.ForeignCPUPercent)
	}
	return t.Flush()
}

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

func bytes(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n >= 1<<20:
		return fmt.Sprintf("%.3g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.3g KiB", float64(n)/(1<<10))
}
