package queue_test

import (
	"testing"
	"time"

	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/processors/queue/queuetest"
)

func TestMemory(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) *queuetest.Env {
		m := queue.NewMemory()
		return &queuetest.Env{
			Queue: "q", Producer: m, Delay: 20 * time.Millisecond,
			Open:   func(*testing.T) queue.Consumer { return m.Consumer("q") },
			Crash:  func(c queue.Consumer) { c.(*queue.MemoryConsumer).Crash() },
			Settle: func(queue.Consumer) {},
		}
	})
}
