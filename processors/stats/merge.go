package stats

import (
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// ByDay keeps type, step, queue and day apart.
func ByDay(k Key) Key {
	k.Partition = -1
	return k
}

// Overall keeps type, step and queue apart.
func Overall(k Key) Key {
	k.Partition, k.Day = -1, -1
	return k
}

// Merge adds up the rows to which by gives the same key, in the order of the keys (type, step, queue, day). Rows of events
// that nothing counts are left out. The given rows stay as they are.
func Merge(rows []*Row, by func(Key) Key) []*Row {
	sums := map[Key]*Row{}
	var all []*Row
	for _, r := range rows {
		if r.Counts.FirstAt == 0 {
			continue
		}
		k := by(r.Key)
		sum := sums[k]
		if sum == nil {
			sum = newRow(k)
			sums[k] = sum
			all = append(all, sum)
		}
		sum.add(r)
	}
	slices.SortFunc(all, func(a, b *Row) int { return a.Key.compare(b.Key) })
	return all
}

func (r *Row) add(o *Row) {
	a, b := r.Counts, o.Counts
	a.Requested += b.Requested
	a.Started += b.Started
	a.Attempts += b.Attempts
	a.BadTimings += b.BadTimings
	e, f := a.Ended, b.Ended
	e.Completed += f.Completed
	e.CompletedWithFailures += f.CompletedWithFailures
	e.Failed += f.Failed
	e.Cancelled += f.Cancelled
	e.Expired += f.Expired
	e.Inconsistent += f.Inconsistent
	t, u := a.Tasks, b.Tasks
	t.Ok += u.Ok
	t.Failed += u.Failed
	t.Skipped += u.Skipped
	t.Cancelled += u.Cancelled
	t.TimedOut += u.TimedOut
	t.Lost += u.Lost
	t.Unknown += u.Unknown
	for i := range a.Hours {
		a.Hours[i] += b.Hours[i]
	}
	if b.FirstAt > 0 && (a.FirstAt == 0 || b.FirstAt < a.FirstAt) {
		a.FirstAt = b.FirstAt
	}
	a.LastAt = max(a.LastAt, b.LastAt)
	mergeInto(&r.Elapsed, o.Elapsed)
	mergeInto(&r.Run, o.Run)
	mergeInto(&r.Wait, o.Wait)
}

func mergeInto(to **codecs.Sketch, from *codecs.Sketch) {
	if from == nil {
		return
	}
	if *to == nil {
		*to = codecs.NewSketch()
	}
	(*to).MergeWith(from)
}
