package sidecar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// stuckAfter is the time without a commit after which a unit that has something to read counts as stuck.
const stuckAfter = 2 * time.Second

// explainLines says in words what keeps a batch from ending, the most telling first:
//
//	it ended; it is quarantined, paused, an orphan; a unit that does not move; feeders that have not sealed; units that
//	are behind but move; units that have read everything and not reported; tasks without outcome
func explainLines(b *api.Batch, x *api.Explain, missing MissingPage, now time.Time) []string {
	if b.Terminal {
		return []string{endedLine(b)}
	}
	var lines []string
	if b.Quarantined {
		lines = append(lines, "the batch is quarantined: a record of it met a fault in the controller; its later records wait in the dead letter for a repair")
	}
	if b.State == "orphan" {
		lines = append(lines, "no START has come: reports or commands name this batch, but nobody has started it")
	}
	if b.Paused {
		lines = append(lines, "the batch is paused: it goes on with resume")
	}
	stuck, moving := lagging(x)
	for _, u := range stuck {
		lines = append(lines, u.line())
	}
	lines = append(lines, feederLines(b)...)
	for _, u := range moving {
		lines = append(lines, u.line())
	}
	lines = append(lines, silentLines(b, x)...)
	if line := missingLine(b, missing); line != "" {
		lines = append(lines, line)
	}
	if b.LastProgress > 0 {
		lines = append(lines, "last progress of the batch "+ago(now, b.LastProgress)+" ago")
	}
	if len(lines) == 0 {
		lines = append(lines, "nothing is known to be missing: the last reports may still be on their way")
	}
	return lines
}

func endedLine(b *api.Batch) string {
	line := "the batch has ended: " + strings.ReplaceAll(b.State, "_", " ")
	if b.Reason != "" {
		line += " (" + b.Reason + ")"
	}
	return line
}

// laggingUnit is a unit that has something to read.
type laggingUnit struct {
	stage *api.ExplainStage
	part  *api.ExplainPartition
}

func (u laggingUnit) idle() time.Duration {
	if u.part.Idle == nil {
		return 0
	}
	return time.Duration(*u.part.Idle) * time.Millisecond
}

// line names stage, topic, partition, group, lag, and the time since the last progress.
func (u laggingUnit) line() string {
	who := "owned by " + u.part.Member + u.part.Host
	switch {
	case u.stage.Members == 0:
		who = "the group has no member"
	case u.part.Member == "" && u.part.Host == "":
		who = "no member owns it"
	}
	return fmt.Sprintf("stage %s, topic %s, partition %d, group %s: lag %d, no progress for %s, %s",
		u.stage.Stage, u.stage.Topic, u.part.Partition, u.stage.Group, u.part.Lag, span(u.idle()), who)
}

// lagging splits the units with a lag into those that do not move (longest first) and those that do (in flow order).
func lagging(x *api.Explain) (stuck, moving []laggingUnit) {
	for i := range x.Stages {
		st := &x.Stages[i]
		for j := range st.Partitions {
			u := laggingUnit{st, &st.Partitions[j]}
			switch {
			case u.part.Lag <= 0:
			case u.idle() >= stuckAfter || st.Members == 0 || u.part.Member == "":
				stuck = append(stuck, u)
			default:
				moving = append(moving, u)
			}
		}
	}
	slices.SortStableFunc(stuck, func(a, b laggingUnit) int {
		return cmp.Or(cmp.Compare(b.idle()/time.Second, a.idle()/time.Second), cmp.Compare(b.part.Lag, a.part.Lag))
	})
	return stuck, moving
}

func feederLines(b *api.Batch) []string {
	if b.State != "open" {
		return nil
	}
	var open []string
	for _, f := range b.Feeders {
		if !f.Sealed {
			open = append(open, fmt.Sprint(f.Feeder))
		}
	}
	if len(open) == 0 {
		return []string{"not sealed: the number of tasks is not known yet"}
	}
	return []string{"not sealed: feeder " + strings.Join(open, ", ") + " has not said how many tasks there are"}
}

// silentLines names units that have read everything and still not reported.
func silentLines(b *api.Batch, x *api.Explain) []string {
	var lines []string
	for _, st := range x.Stages {
		if stageRow(b, st.Stage, st.Topic) == nil {
			continue
		}
		var silent []string
		for _, p := range st.Partitions {
			if !p.Reported && p.Lag <= 0 {
				silent = append(silent, fmt.Sprint(p.Partition))
			}
		}
		if len(silent) == 0 {
			continue
		}
		who, have := "partitions "+strings.Join(silent, ", "), "have"
		if len(silent) == 1 {
			who, have = "partition "+silent[0], "has"
		}
		what := have + " read everything and not reported"
		if st.Group == "" {
			what = have + " not reported"
		}
		line := fmt.Sprintf("stage %s, topic %s: %s %s", st.Stage, st.Topic, who, what)
		if at := stageRow(b, st.Stage, st.Topic).LastAt; at > 0 {
			line += "; last report of the stage " + ago(time.UnixMilli(int64(x.At)), at) + " ago"
		}
		lines = append(lines, line)
	}
	return lines
}

func missingLine(b *api.Batch, m MissingPage) string {
	if len(m.Ranges) == 0 {
		return ""
	}
	var names []string
	for _, r := range m.Ranges {
		name := fmt.Sprint(r.First)
		if r.First != r.Last {
			name += fmt.Sprintf("-%d", r.Last)
		}
		if len(b.Feeders) > 1 {
			name = fmt.Sprintf("feeder %d: %s", r.Feeder, name)
		}
		names = append(names, name)
	}
	if m.Next != nil {
		names = append(names, "...")
	}
	line := fmt.Sprintf("%d tasks have no outcome: %s", m.Count, strings.Join(names, ", "))
	if b.Counts.Running > 0 {
		line += fmt.Sprintf(" (%d of them were reported as started)", b.Counts.Running)
	}
	return line
}

func ago(now time.Time, at api.Int64) string { return span(now.Sub(time.UnixMilli(int64(at)))) }

// span prints a duration with the precision that matters to a reader.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
