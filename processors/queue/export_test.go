package queue

import "context"

// Crash ends a consumer as kill -9 would, but for the session time-out: nothing is committed any more, and the client
// is gone.
func Crash(q *Kafka) {
	q.gone.Store(true)
	q.mu.Lock()
	for _, p := range q.parts {
		q.interrupt(p)
	}
	q.mu.Unlock()
	q.stop()
	q.loops.Wait()
	q.cl.CloseAllowingRebalance()
}

// Commit commits at once what is done.
func Commit(ctx context.Context, q *Kafka) error { return q.commit(ctx, nil) }

// CrashRetry makes a mover commit nothing any more.
func CrashRetry(r *Retry) { r.gone.Store(true) }

// Committed reads a committed offset with its metadata: which offsets are done.
func Committed(offset int64, topicID [16]byte, metadata string) (done func(offset int64) bool, err error) {
	p, err := decodeProgress(max(offset, 0), topicID, metadata)
	return p.isDone, err
}
