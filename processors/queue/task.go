package queue

import (
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// decodeTask reads a queue record.
func decodeTask(rec *kgo.Record) (*codecs.Task, error) {
	c := fromKgo(rec)
	var ev codecs.Event
	if err := codecs.Decode(&c, &ev); err != nil {
		return nil, err
	}
	t, ok := ev.Data.(*codecs.Task)
	if !ok {
		return nil, fmt.Errorf("%w: %s in a queue", codecs.ErrUnknownType, ev.Type)
	}
	return t, nil
}

// Key is the record key of a task: it names the task and spreads the sub-jobs of a batch over the partitions.
func Key(t *codecs.Task) string {
	if t.Batch != "" && t.Kind == "sub-job" {
		return fmt.Sprintf("%s/%d", t.Batch, t.Index)
	}
	return t.Id
}

// Partition places a task: the sub-jobs of a batch go round the partitions, from a start that differs per batch.
func Partition(t *codecs.Task, n int32) int32 {
	if t.Batch != "" && t.Kind == "sub-job" {
		return int32((uint64(crc32.ChecksumIEEE([]byte(t.Batch))) + uint64(t.Index)) % uint64(n))
	}
	return codecs.Partition([]byte(t.Id), n)
}
