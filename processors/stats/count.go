package stats

import (
	"github.com/quiesce/quiesce/codecs"
)

// count takes one event into its row. Events that statistics do not count leave it as it is.
func (r *Row) count(ev *codecs.Event) {
	switch d := ev.Data.(type) {
	case *codecs.JobRequested:
		r.seen(ev)
		r.Counts.Requested++
	case *codecs.JobEvent:
		r.jobEvent(ev, d)
	case *codecs.BatchEvent:
		if d.Owner.GetJob() == "" {
			r.batchEvent(ev, d)
		}
	case *codecs.SubjobsCompleted:
		r.subjobs(ev, d)
	}
}

// seen widens the time that the row spans.
func (r *Row) seen(ev *codecs.Event) {
	c := r.Counts
	if c.FirstAt == 0 || ev.Time < c.FirstAt {
		c.FirstAt = ev.Time
	}
	c.LastAt = max(c.LastAt, ev.Time)
}

func (r *Row) jobEvent(ev *codecs.Event, d *codecs.JobEvent) {
	switch ev.Type {
	case codecs.TypeJobStarted, codecs.TypeStepStarted:
		r.seen(ev)
		r.Counts.Started++
	case codecs.TypeJobCompleted, codecs.TypeJobFailed, codecs.TypeJobCancelled:
		r.seen(ev)
		if n := r.jobEnd(d.State); n != nil {
			*n++
		}
		r.elapsed(d.StartedAt, d.EndedAt)
	case codecs.TypeStepCompleted:
		r.seen(ev)
		if n := r.stepEnd(d.StepState); n != nil {
			*n++
		}
		r.elapsed(d.StartedAt, d.EndedAt)
		if d.Batch == "" && d.Attempts > 0 { // the step was one task, and a worker had it
			r.tasks(ev, outcomeOf[d.StepState], 1)
			r.Counts.Attempts += uint64(d.Attempts)
			r.timing(d.Timing)
		}
	}
}

func (r *Row) batchEvent(ev *codecs.Event, d *codecs.BatchEvent) {
	if ev.Type == codecs.TypeBatchStarted {
		r.seen(ev)
		r.Counts.Started++
		return
	}
	if n := r.batchEnd(ev.Type); n != nil {
		r.seen(ev)
		*n++
		r.elapsed(d.StartedAt, d.DecidedAt)
	}
}

func (r *Row) subjobs(ev *codecs.Event, d *codecs.SubjobsCompleted) {
	r.seen(ev)
	for _, it := range d.Items {
		if n, _, err := codecs.ItemSize(it); err == nil { // the controller wrote it: there is no error
			r.tasks(ev, it.Outcome, n)
		}
	}
	r.Counts.Attempts += d.Attempts
	r.timing(d.Timing)
	for _, t := range d.Timings {
		r.timing(t)
	}
}

// tasks counts n tasks that ended.
func (r *Row) tasks(ev *codecs.Event, o codecs.Outcome_Code, n uint64) {
	t := r.Counts.Tasks
	switch o {
	case codecs.OK:
		t.Ok += n
	case codecs.Failed:
		t.Failed += n
	case codecs.Skipped:
		t.Skipped += n
	case codecs.Cancelled:
		t.Cancelled += n
	case codecs.TimedOut:
		t.TimedOut += n
	case codecs.Lost:
		t.Lost += n
	default:
		t.Unknown += n
	}
	r.Counts.Hours[max(ev.Time, 0)%msPerDay/(60*60*1000)] += n
}

// elapsed notes how long something took, in ms.
func (r *Row) elapsed(from, to int64) {
	if from > 0 && to > 0 {
		if r.Elapsed == nil {
			r.Elapsed = codecs.NewSketch()
		}
		r.Elapsed.Add(float64(to - from))
	}
}

// timing merges what workers measured. A sketch that cannot be read is counted and left out.
func (r *Row) timing(t *codecs.Timing) {
	for _, s := range []struct {
		from []byte
		to   **codecs.Sketch
	}{{t.GetRun(), &r.Run}, {t.GetQueueWait(), &r.Wait}} {
		if len(s.from) == 0 {
			continue
		}
		if *s.to == nil {
			*s.to = codecs.NewSketch()
		}
		if (*s.to).Merge(s.from) != nil {
			r.Counts.BadTimings++
		}
	}
}
