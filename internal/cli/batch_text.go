package cli

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// batchLine is a batch in one line of the list.
func batchLine(b *api.Batch) []string {
	return []string{b.Batch, b.Run, stateText(b), b.Mode, fmt.Sprint(b.Counts.Ended()), total(b), fmt.Sprint(failures(b.Counts)), when(b.StartedAt)}
}

// stateText is the state with its flags.
func stateText(b *api.Batch) string {
	state := b.State
	if b.Empty {
		state += " empty"
	}
	if b.Paused {
		state += " paused"
	}
	if b.Quarantined {
		state += " QUARANTINED"
	}
	return state
}

// total is the number of tasks, or ? while no seal has named it.
func total(b *api.Batch) string {
	if b.State == "open" || b.State == "orphan" {
		return "?"
	}
	return fmt.Sprint(b.Counts.Total)
}

func failures(c api.Counts) uint32 { return c.Failed + c.TimedOut + c.Lost }

// batchText is everything about a batch, for people.
func batchText(b *api.Batch) string {
	var s strings.Builder
	line := func(name, format string, v ...any) {
		fmt.Fprintf(&s, "%-10s "+format+"\n", append([]any{name}, v...)...)
	}
	line("batch", "%s  run %s  round %d", b.Batch, b.Run, b.Round)
	line("state", "%s", stateText(b))
	if b.Reason != "" {
		line("reason", "%s", b.Reason)
	}
	if b.Topology != nil && b.Topology.Name != "" {
		line("topology", "%s version %d, mode %s", b.Topology.Name, b.Topology.Version, b.Mode)
	} else {
		line("mode", "%s", b.Mode)
	}
	line("tasks", "%s total: %s", total(b), countsText(b.Counts))
	for _, st := range b.Stages {
		line("stage", "%s/%s  %d of %d units ended, %d records, %d failed", st.Stage, st.Topic, st.Reported, st.Units, st.Consumed, st.Failed)
	}
	if b.Audit != (api.Audit{}) {
		line("audit", "%d duplicate, %d late, %d unexpected, %d stale", b.Audit.Duplicates, b.Audit.Late, b.Audit.Unexpected, b.Audit.Stale)
	}
	if len(b.Labels) > 0 {
		line("labels", "%s", labelsText(b.Labels))
	}
	if b.Owner != nil {
		line("owner", "job %s step %s", b.Owner.Job, b.Owner.Step)
	}
	line("started", "%s", when(b.StartedAt))
	if b.EndedAt != 0 {
		took := time.Duration(b.EndedAt-b.StartedAt) * time.Millisecond
		line("ended", "%s, after %s", when(b.EndedAt), took)
	} else if b.Rate > 0 {
		line("rate", "%.1f tasks/s, expected end %s", b.Rate, when(b.ETA))
	}
	return s.String()
}

func countsText(c api.Counts) string {
	parts := []struct {
		n    uint32
		name string
	}{{c.OK, "ok"}, {c.Failed, "failed"}, {c.Skipped, "skipped"}, {c.Cancelled, "cancelled"}, {c.TimedOut, "timed out"},
		{c.Lost, "lost"}, {c.Unknown, "attempted"}, {c.Running, "running"}, {c.Pending, "pending"}}
	var out []string
	for _, p := range parts {
		if p.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", p.n, p.name))
		}
	}
	if len(out) == 0 {
		return "none yet"
	}
	return strings.Join(out, ", ")
}

func labelsText(labels map[string]string) string {
	var out []string
	for k, v := range labels {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

// when prints a time in ms since the epoch.
func when(ms api.Int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// rangeText prints a range of indexes as 7 or 7-9.
func rangeText(r api.Range) string {
	s := strconv.FormatUint(uint64(r.First), 10)
	if r.Last > r.First {
		s += "-" + strconv.FormatUint(uint64(r.Last), 10)
	}
	return s
}
