package bench

import (
	"math"
	"sort"
	"strconv"
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
	ChangelogBytes    int64   `json:"changelog_bytes,omitempty"`
	ChangelogRows     int64   `json:"changelog_rows,omitempty"`
	RowsPerS          float64 `json:"rows_per_s,omitempty"`
	RSSMiB            float64 `json:"rss_mib,omitempty"` // most while Quiesce ran, the embedded broker included
	CPUPerMillion     float64 `json:"cpu_s_per_million,omitempty"`
	ForeignCPUPercent float64 `json:"foreign_cpu_percent"`
	Command           string  `json:"command"`
	Rows              int     `json:"rows,omitempty"` // of the table
	*RecoveryFigures
	*MemoryFigures
	*BesideFigures
	*FanoutFigures
}

// round keeps three significant digits: more would pretend a precision that the machine does not have.
func round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return 0
	}
	return y
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
