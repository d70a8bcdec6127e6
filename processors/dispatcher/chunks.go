package dispatcher

import (
	"container/list"
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// chunks reads chunks of the manifest by their positions and keeps those used last. For one goroutine.
type chunks struct {
	cl       *kgo.Client
	topic    string
	source   string
	limit    int // bytes
	counters *Counters

	at   position // of the next record; partition -1 = none is read
	used *list.List
	by   map[position]*list.Element
	size int
}

type position struct {
	partition int32
	offset    int64
}

// kept is a chunk in the cache; nil = nothing stands there.
type kept struct {
	at    position
	key   string
	chunk *codecs.ManifestChunk
	bytes int
}

const (
	// near is how far ahead a position may be for reading on to be cheaper than reading anew, in records.
	near = 1000
	// patience is how long a chunk that should be there may take.
	patience = 30 * time.Second
)

// newChunks reads and removes chunks with a client that partitions by hand.
func newChunks(cl *kgo.Client, topic, source string, limit int, counters *Counters) *chunks {
	return &chunks{cl: cl, topic: topic, source: source, limit: limit, counters: counters, at: position{partition: -1}, used: list.New(), by: map[position]*list.Element{}}
}

// Chunk returns the chunk at a position; nil when it is gone.
func (c *chunks) Chunk(ctx context.Context, p *codecs.ChunkPosition) (*codecs.ManifestChunk, error) {
	k, err := c.find(ctx, p)
	if k == nil {
		return nil, err
	}
	return k.chunk, nil
}

// Remove writes a null record under the key of the chunk.
func (c *chunks) Remove(ctx context.Context, batch string, p *codecs.ChunkPosition) error {
	k, err := c.find(ctx, p)
	if err != nil || k == nil || k.chunk == nil || string(codecs.BatchOf([]byte(k.key))) != batch {
		return err
	}
	rec, err := codecs.Encode(c.topic, k.key, c.source, &codecs.Event{Type: codecs.TypeManifestChunk, ID: fmt.Sprintf("collect/%d/%d", p.Partition, p.Offset)})
	if err != nil {
		return err
	}
	out := toKgo(&rec)
	out.Partition = int32(p.Partition)
	if err := c.cl.ProduceSync(ctx, out).FirstErr(); err != nil {
		return fmt.Errorf("manifest partition %d offset %d: remove: %w", p.Partition, p.Offset, err)
	}
	return nil
}

// find returns what stands at a position; nil when it is gone.
func (c *chunks) find(ctx context.Context, p *codecs.ChunkPosition) (*kept, error) {
	want := position{int32(p.Partition), p.Offset}
	if e, ok := c.by[want]; ok {
		c.used.MoveToFront(e)
		return e.Value.(*kept), nil
	}
	if err := c.seek(ctx, want); err != nil {
		return nil, err
	}
	if c.at.partition < 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for c.at.partition == want.partition && c.at.offset <= want.offset {
		fetches := c.cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			c.stop()
			return nil, fmt.Errorf("manifest partition %d offset %d: %w", want.partition, want.offset, err)
		}
		var failed error
		fetches.EachError(func(_ string, p int32, err error) { failed = fmt.Errorf("manifest partition %d: %w", p, err) })
		if failed != nil {
			c.stop()
			return nil, failed
		}
		fetches.EachRecord(func(rec *kgo.Record) { c.read(rec, want) })
	}
	if e, ok := c.by[want]; ok {
		return e.Value.(*kept), nil
	}
	return nil, nil // compacted away
}

// seek makes the next poll bring records from the position on. Where the log ends before it, nothing is read.
func (c *chunks) seek(ctx context.Context, want position) error {
	if c.at.partition == want.partition && c.at.offset <= want.offset && want.offset-c.at.offset < near {
		return nil
	}
	c.stop()
	ends, err := kadm.NewClient(c.cl).ListEndOffsets(ctx, c.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if end, ok := ends.Lookup(c.topic, want.partition); !ok || want.offset >= end.Offset {
		return nil
	}
	c.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: {want.partition: kgo.NewOffset().At(want.offset)}})
	c.at = want
	return nil
}

func (c *chunks) stop() {
	if c.at.partition >= 0 {
		c.cl.RemoveConsumePartitions(map[string][]int32{c.topic: {c.at.partition}})
		c.at.partition = -1
	}
}

// read keeps a record. What cannot be read is as good as gone.
func (c *chunks) read(rec *kgo.Record, want position) {
	at := position{rec.Partition, rec.Offset}
	if at.partition != c.at.partition || at.offset < c.at.offset {
		return // of a partition that was read before
	}
	c.at.offset = at.offset + 1
	if _, ok := c.by[at]; ok {
		return
	}
	c.counters.ChunksRead.Add(1)
	in := fromKgo(rec)
	var ev codecs.Event
	var chunk *codecs.ManifestChunk
	if err := codecs.Decode(&in, &ev); err == nil {
		chunk, _ = ev.Data.(*codecs.ManifestChunk)
	}
	k := &kept{at, string(rec.Key), chunk, cost(len(rec.Value), chunk)}
	c.by[at] = c.used.PushFront(k)
	c.size += k.bytes
	for c.size > c.limit && c.used.Len() > 1 {
		e := c.used.Back()
		k := e.Value.(*kept)
		if k.at == want { // it is why this was read
			c.used.MoveToFront(e)
			continue
		}
		c.used.Remove(e)
		delete(c.by, k.at)
		c.size -= k.bytes
	}
}

// Bytes of memory beside those of the record.
const (
	costChunk   = 256
	costTask    = 100 // an id, and the structure
	costPayload = 120
)

// cost is about the memory that a decoded chunk takes: small tasks take several times their bytes.
func cost(record int, chunk *codecs.ManifestChunk) int {
	n := record + costChunk + costTask*len(chunk.GetTasks())
	for _, t := range chunk.GetTasks() {
		if t.Payload != nil {
			n += costPayload
		}
	}
	return n
}
