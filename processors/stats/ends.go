package stats

import "github.com/quiesce/quiesce/codecs"

// outcomeOf is the outcome of the single task of a step that ended so.
var outcomeOf = map[codecs.StepState_Code]codecs.Outcome_Code{
	codecs.StepState_completed:               codecs.OK,
	codecs.StepState_completed_with_failures: codecs.OK,
	codecs.StepState_failed:                  codecs.Failed,
	codecs.StepState_cancelled:               codecs.Cancelled,
	codecs.StepState_expired:                 codecs.TimedOut,
	codecs.StepState_skipped:                 codecs.Skipped,
}

// jobEnd is the counter of a job's end; nil = it has not ended.
func (r *Row) jobEnd(s codecs.JobState_Code) *uint64 {
	e := r.Counts.Ended
	switch s {
	case codecs.JobState_completed:
		return &e.Completed
	case codecs.JobState_completed_with_failures:
		return &e.CompletedWithFailures
	case codecs.JobState_failed:
		return &e.Failed
	case codecs.JobState_cancelled:
		return &e.Cancelled
	case codecs.JobState_expired:
		return &e.Expired
	}
	return nil
}

// stepEnd is the counter of a step's end; nil = it has not ended.
func (r *Row) stepEnd(s codecs.StepState_Code) *uint64 {
	e := r.Counts.Ended
	switch s {
	case codecs.StepState_completed:
		return &e.Completed
	case codecs.StepState_completed_with_failures:
		return &e.CompletedWithFailures
	case codecs.StepState_failed:
		return &e.Failed
	case codecs.StepState_cancelled:
		return &e.Cancelled
	case codecs.StepState_expired:
		return &e.Expired
	}
	return nil
}

// batchEnd is the counter of a terminal batch event; nil = it is none.
func (r *Row) batchEnd(event string) *uint64 {
	e := r.Counts.Ended
	switch event {
	case codecs.TypeBatchCompleted:
		return &e.Completed
	case codecs.TypeBatchCompletedWithFailures:
		return &e.CompletedWithFailures
	case codecs.TypeBatchFailed:
		return &e.Failed
	case codecs.TypeBatchCancelled:
		return &e.Cancelled
	case codecs.TypeBatchExpired:
		return &e.Expired
	case codecs.TypeBatchInconsistent:
		return &e.Inconsistent
	}
	return nil
}
