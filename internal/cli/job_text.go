package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// jobStateText is the state with its flags.
func jobStateText(j *api.Job) string {
	state := j.State
	if j.Paused {
		state += " paused"
	}
	if j.Quarantined {
		state += " QUARANTINED"
	}
	return state
}

// endedSteps says how many of a job's steps have ended.
func endedSteps(j *api.Job) string {
	ended := 0
	for _, s := range j.Steps {
		if s.EndedAt != 0 {
			ended++
		}
	}
	return fmt.Sprintf("%d/%d", ended, len(j.Steps))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// jobText writes everything about a job, for people.
func jobText(w io.Writer, j *api.Job) error {
	line := func(name, format string, v ...any) {
		fmt.Fprintf(w, "%-10s "+format+"\n", append([]any{name}, v...)...)
	}
	line("job", "%s  type %s@%d  round %d", j.Job, j.Type, j.TypeVersion, j.Round)
	if j.Customer != "" {
		line("customer", "%s", j.Customer)
	}
	line("state", "%s", jobStateText(j))
	if j.Reason != "" {
		line("reason", "%s", j.Reason)
	}
	if j.Awaits != nil {
		line("waits for", "%s", awaitsText(j.Awaits))
	}
	if j.Audit != (api.Audit{}) {
		line("audit", "%d duplicate, %d late, %d unexpected, %d stale", j.Audit.Duplicates, j.Audit.Late, j.Audit.Unexpected, j.Audit.Stale)
	}
	if len(j.Labels) > 0 {
		line("labels", "%s", labelsText(j.Labels))
	}
	line("requested", "%s", when(j.RequestedAt))
	if j.EndedAt != 0 {
		line("ended", "%s, after %s", when(j.EndedAt), span(j.RequestedAt, j.EndedAt))
	} else if j.CompleteBy != 0 {
		line("deadline", "%s", when(j.CompleteBy))
	}
	fmt.Fprintln(w)
	rows := [][]string{{"STEP", "QUEUE", "STATE", "TASKS", "TOOK", "BATCH", "REASON"}}
	for i := range j.Steps {
		rows = append(rows, stepLine(&j.Steps[i]))
	}
	return table(w, rows)
}

func stepLine(s *api.JobStep) []string {
	tasks, took := "1", "-"
	switch {
	case s.Counts != nil:
		tasks = fmt.Sprintf("%d: %s", s.Counts.Total, countsText(*s.Counts))
	case s.Split != "":
		tasks = "?"
	}
	if s.EndedAt != 0 && s.StartedAt != 0 {
		took = span(s.StartedAt, s.EndedAt).String()
	}
	return []string{s.Step, s.Queue, s.State, tasks, took, orDash(s.Batch), orDash(s.Reason)}
}

// span is the time between two times in ms since the epoch.
func span(from, to api.Int64) time.Duration { return time.Duration(to-from) * time.Millisecond }

func awaitsText(w *api.Awaits) string {
	var out []string
	for _, b := range w.Batches {
		out = append(out, "batch "+b)
	}
	for _, j := range w.Jobs {
		out = append(out, "job "+j)
	}
	if w.Slot {
		out = append(out, "another job of the customer to end")
	}
	return strings.Join(out, ", ")
}
