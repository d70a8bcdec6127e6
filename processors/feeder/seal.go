package feeder

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// Seal waits until every record is acked, sends END behind them (markers), and then says how many there are. It returns
// their number when that is acked. It may be called again when it failed.
func (f *Feeder) Seal(ctx context.Context) (uint32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != started {
		return f.next, f.failed("seal", errOrder)
	}
	if f.next < f.resume {
		return f.next, f.failed("seal", fmt.Errorf("%d records, %d were fed before: %w", f.next, f.resume, ErrInputChanged))
	}
	if err := f.acks.wait(ctx); err != nil {
		return f.next, f.failed("seal", err)
	}
	if f.cfg.Mode == topology.ModeMarkers {
		if err := f.end(ctx); err != nil {
			return f.next, f.failed("seal", err)
		}
	}
	seal := &codecs.BatchSeal{Run: f.file.Run, Feeder: f.cfg.Feeder, Total: f.next, PayloadDigest: f.rolled[:]}
	if err := f.control(ctx, codecs.TypeBatchSeal, seal); err != nil {
		return f.next, f.failed("seal", err)
	}
	f.file.Acked, f.file.Digest, f.file.Sealed = f.next, f.rolled.String(), true
	f.state = sealed
	if err := f.save(); err != nil {
		return f.next, f.failed("seal", err)
	}
	return f.next, nil
}

// Flush waits until every record that was sent is acked.
func (f *Feeder) Flush(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.acks == nil {
		return f.failed("flush", errOrder)
	}
	if err := f.acks.wait(ctx); err != nil {
		return f.failed("flush", err)
	}
	return nil
}

// end sends END to every partition of the source.
func (f *Feeder) end(ctx context.Context) error {
	source := f.cfg.Topology.Source
	tag := f.tag
	tag.Feeder, tag.Control = 0, codecs.ControlEnd
	tag.From = &codecs.Unit{Stage: topology.FeederStage, Topic: source, Partition: f.cfg.Feeder}
	var headers []kgo.RecordHeader
	for _, h := range codecs.AppendTag(nil, &tag) {
		headers = append(headers, kgo.RecordHeader(h))
	}
	var recs []*kgo.Record
	for p := range f.plan.Partitions[source] {
		recs = append(recs, &kgo.Record{Topic: source, Partition: p, Value: []byte{}, Headers: headers})
	}
	if err := f.client.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		return fmt.Errorf("END to %s: %w", source, err)
	}
	return nil
}

// control sends an event to the control topic and waits for its ack. Its id is the same each time.
func (f *Feeder) control(ctx context.Context, kind string, data proto.Message) error {
	ev := codecs.Event{Type: kind, ID: fmt.Sprintf("%s/%s/%s/%d", f.cfg.Batch, f.file.Run, kind, f.cfg.Feeder), Data: data}
	rec, err := f.encoder.Encode(codecs.Topic(f.cfg.Prefix, codecs.TopicControl), f.cfg.Batch, &ev)
	if err != nil {
		return err
	}
	k := &kgo.Record{Topic: rec.Topic, Partition: -1, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		k.Headers = append(k.Headers, kgo.RecordHeader(h))
	}
	return f.client.ProduceSync(ctx, k).FirstErr()
}

// save writes the checkpoint if there is to be one; mu is held.
func (f *Feeder) save() error {
	if f.cfg.Checkpoint == "" {
		return nil
	}
	return f.file.write(f.cfg.Checkpoint)
}

// saveEvery keeps the checkpoint up to date until Close.
func (f *Feeder) saveEvery() {
	defer close(f.done)
	t := time.NewTicker(f.cfg.CheckpointEvery)
	defer t.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-t.C:
			f.checkpoint()
		}
	}
}

// checkpoint writes how far the feeding is, if that has changed.
func (f *Feeder) checkpoint() {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, d, _ := f.acks.prefix()
	if f.state != started || n == f.file.Acked || f.next < f.resume {
		return
	}
	f.file.Acked, f.file.Digest = n, d.String()
	if err := f.save(); err != nil {
		f.cfg.Log.Error("checkpoint failed", "batch_id", f.cfg.Batch, "run", f.file.Run, "error", err)
		f.bad = err
	}
}

// Close ends the feeder. Without Seal, records that are not acked are given up; the checkpoint is written, so that
// another process can go on.
func (f *Feeder) Close() error {
	f.closing.Do(func() {
		close(f.stop)
		f.mu.Lock()
		running := f.state >= started
		f.mu.Unlock()
		if running {
			<-f.done
			f.checkpoint()
		}
		f.client.Close()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = closed
	return f.bad
}
