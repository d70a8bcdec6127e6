package worker

import (
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// Backoff is the delay after failed attempt n (1 = first): first * factor^(n-1), at most max.
func Backoff(r *codecs.Retry, n uint32) time.Duration {
	factor := r.GetFactor()
	if factor == 0 {
		factor = 2
	}
	ms := float64(r.GetFirst()) * math.Pow(factor, float64(max(n, 1)-1))
	if most := float64(r.GetMax()); most > 0 {
		ms = min(ms, most)
	}
	return time.Duration(min(ms, float64(math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}

// next is the task of the following attempt; false when there is none.
func next(t *Task, now time.Time) (*Task, time.Duration, bool) {
	n := max(t.Attempt, 1)
	if n >= max(t.Retry.GetAttempts(), 1) {
		return nil, 0, false
	}
	wait := Backoff(t.Retry, n)
	again := proto.Clone(t).(*Task)
	again.Attempt = n + 1
	again.EnqueuedAt = now.UnixMilli()
	again.NotBefore = now.Add(wait).UnixMilli()
	return again, wait, true
}

// early is how long a task is to wait still. Less than the shortest tier is not worth a round, nor are clocks as exact.
func early(t *Task, now time.Time, shortest time.Duration) time.Duration {
	if wait := time.UnixMilli(t.NotBefore).Sub(now); t.NotBefore > 0 && wait >= shortest {
		return wait
	}
	return 0
}

func toValid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
