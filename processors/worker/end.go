package worker

import (
	"time"

	"github.com/quiesce/quiesce/processors/queue"
)

// Kinds of a task, as in Task.kind.
const (
	kindTask     = "task"     // the single task of a step
	kindSplit    = "split"    // lists the sub-jobs of a fan-out step
	kindSubjob   = "sub-job"  // one of them
	kindDelivery = "delivery" // of a notification
)

// end reports a terminal outcome; the delivery is done once that is durable.
func (w *pool) end(e *End) {
	w.reporter.End(e, func(err error) {
		if err != nil {
			w.cfg.Log.Error("outcome not reported; the task will run again", "queue", w.cfg.Queue, "task_id", e.Task.Id,
				"batch_id", e.Task.Batch, "index", e.Task.Index, "outcome", e.Outcome, "error", err)
			w.later(e.Delivery)
			return
		}
		w.cfg.Counters.ended(e.Outcome)
		w.done(e.Delivery)
	})
}

// again puts a task into the queue once more; the delivery is done once it stands there.
func (w *pool) again(d *queue.Delivery, t *Task, wait time.Duration) {
	if err := w.producer.Enqueue(w.attempts, w.cfg.Queue, wait, t); err != nil {
		w.cfg.Log.Warn("retry not enqueued; the task is given back", "queue", w.cfg.Queue, "task_id", t.Id, "batch_id", t.Batch,
			"index", t.Index, "error", err)
		w.later(d)
		return
	}
	w.done(d)
}

// pause before a task is given back whose end could not be written: else it would come back at once.
const pause = time.Second

func (w *pool) later(d *queue.Delivery) {
	select {
	case <-w.attempts.Done():
		w.release(d)
	default:
		time.AfterFunc(pause, func() { w.release(d) })
	}
}
