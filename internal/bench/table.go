package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
)

// tasksOf is the number of tasks of a batch of a filled table; an open one has half of them reported.
const tasksOf = 10

// sample is a batch as a table has it: the bytes of its rows are alike for all batches with the same history.
type sample struct {
	header processors.Envelope
	row    []byte
	chunk  []byte // nil = none
}

// newSample lets the machine take the history of one batch: open, or ended and collected.
func newSample(f *field, key string, open bool) (sample, error) {
	s := newStepper(batch.New(batch.Config{}))
	var offset int64
	l := &load{cfg: Config{N: tasksOf, Batches: 1}, emit: func(_ string, ev *codecs.Event) error {
		rec, err := codecs.Encode(f.topic(codecs.TopicControl), key, codecs.Source(f.prefix, "bench"), ev)
		if err != nil {
			return err
		}
		k := wire(&rec)
		k.Offset, k.Timestamp = offset, time.Now()
		offset++
		_, err = s.step(k)
		return err
	}}
	if err := l.begin(0); err != nil {
		return sample{}, err
	}
	done := tasksOf
	if open {
		done /= 2
	}
	for i := range done {
		if err := l.report(0, []uint32{uint32(i)}); err != nil {
			return sample{}, err
		}
	}
	if !open {
		if err := l.send(key, codecs.TypeBatchCommand, &codecs.BatchCommand{Id: "c", Verb: "gc"}); err != nil {
			return sample{}, err
		}
	}
	out := sample{header: processors.Envelope{Applied: -1}}
	var err error
	if out.row, err = s.rows[key].AppendBinary(nil); err != nil || !open {
		return out, err
	}
	out.chunk, err = s.parts[codecs.ChunkKey(key, "r", 0)].AppendBinary(nil)
	return out, err
}

// fill writes a table as a controller leaves it: collected batches, and open ones with half of their tasks reported.
// Their histories are not in the control topic. It returns the number of rows.
func (f *field) fill(ctx context.Context, collected, open int) (rows int, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ProducerBatchMaxBytes(1<<20), kgo.MaxBufferedRecords(100_000),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return 0, fmt.Errorf("fill the table: %w", err)
	}
	defer client.Close()
	table := codecs.Table(f.prefix, codecs.GroupController)
	var promise kgo.FirstErrPromise
	put := func(batch, key string, e processors.Envelope, row []byte) {
		rows++
		client.Produce(ctx, &kgo.Record{Topic: table, Partition: codecs.Partition([]byte(batch), f.cfg.Partitions), Key: []byte(key),
			Value: e.AppendRow(nil, row)}, promise.Promise())
	}
	for kind, n := range map[bool]int{false: collected, true: open} {
		s, err := newSample(f, filledID(0, kind), kind)
		if err != nil {
			return rows, fmt.Errorf("fill the table: %w", err)
		}
		for i := range n {
			id := filledID(i, kind)
			put(id, id, s.header, s.row)
			if s.chunk != nil {
				put(id, codecs.ChunkKey(id, "r", 0), processors.Envelope{Applied: -1, Part: true}, s.chunk)
			}
		}
	}
	if err := promise.Err(); err != nil {
		return rows, fmt.Errorf("fill the table: %w", err)
	}
	return rows, nil
}

func filledID(i int, open bool) string {
	if open {
		return fmt.Sprintf("open-%d", i)
	}
	return fmt.Sprintf("collected-%d", i)
}
