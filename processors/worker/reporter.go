package worker

import (
	"context"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
)

// Reporter makes durable what became of tasks.
type Reporter interface {
	// End takes the terminal outcome of a task and calls acked once, when it is durable or cannot be; a failure has left a
	// dead letter before. It does not block.
	End(e *End, acked func(error))
	// Chunk writes one chunk of the manifest, or removes it (nil), and returns where it stands.
	Chunk(ctx context.Context, key string, c *codecs.ManifestChunk) (*codecs.ChunkPosition, error)
	// Propose hands in the list of a split.
	Propose(ctx context.Context, t *Task, p *codecs.SplitProposed) error
}

// End is how a task ended.
type End struct {
	Delivery  *queue.Delivery
	Task      *Task
	Outcome   codecs.Outcome_Code
	Reason    string
	Result    *codecs.Payload
	Children  *codecs.Children
	QueueWait time.Duration // from the time it was due to the start of the last attempt
	Run       time.Duration // of the last attempt
}

// maxReason bounds a reason in bytes.
const maxReason = 1024

// clip cuts a reason to size, at a character.
func clip(s string) string {
	if s = toValid(s); len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason-3], "") + "..."
}
