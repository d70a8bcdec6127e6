package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/notify"
)

// look is how often an awaited condition is looked at while nothing comes.
const look = 50 * time.Millisecond

// await reads events and dead letters until done.
func (r *runner) await(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Patience)
	defer cancel()
	for !done() {
		if err := r.poll(ctx); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return &faultError{fmt.Sprintf("%s did not come within %s", what, r.cfg.Patience)}
			}
			return err
		}
	}
	return nil
}

// poll reads what comes within a look.
func (r *runner) poll(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	fetches := r.client.PollFetches(short)
	if err := fetches.Err0(); err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	fetches.EachRecord(func(k *kgo.Record) {
		r.next[place{k.Topic, k.Partition}] = k.Offset + 1
		r.read(k)
	})
	return nil
}

// read files what came out under its batch. Records of other batches are not ours.
func (r *runner) read(k *kgo.Record) {
	if k.Topic == codecs.Topic(r.cfg.Prefix, codecs.TopicDeadLetter) {
		r.readDeadLetter(k)
		return
	}
	rec := recordOf(k)
	var ev codecs.Event
	if codecs.Decode(&rec, &ev) != nil {
		return // a foreign record
	}
	if t, ok := ev.Data.(*codecs.Task); ok {
		r.readTask(t)
		return
	}
	if s, ok := r.subjects[string(codecs.BatchOf(k.Key))]; ok {
		s.add(ev.Type, ev.ID, ev.Data)
	}
}

func recordOf(k *kgo.Record) codecs.Record {
	rec := codecs.Record{Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	return rec
}

// readTask files a task under its batch or job, a delivery under what its event is about.
func (r *runner) readTask(t *codecs.Task) {
	if d, err := notify.ReadDelivery(t); err == nil {
		if s, ok := r.subjects[d.Subject]; ok {
			count(s.deliveries, d.Type, t.Id)
		}
		return
	}
	about, id := t.Job, fmt.Sprintf("%s/%d/%s", t.Kind, t.Round, t.Step)
	if t.Kind == kindSubjob {
		about, id = t.Batch, fmt.Sprintf("%s/%d/%d/%s", t.Run, t.Round, t.Index, t.Id)
	}
	if s, ok := r.subjects[about]; ok {
		s.tasks[id] = true
	}
}

const kindSubjob = "sub-job"

// readDeadLetter files a dead letter under the batch of its key, or, where it has none, of its ce_id. Some hold the record,
// those of a machine say what it was.
func (r *runner) readDeadLetter(k *kgo.Record) {
	rec := recordOf(k)
	id := string(codecs.BatchOf(k.Key))
	if v, ok := rec.Header(codecs.HeaderID); ok && id == "" {
		id, _, _ = strings.Cut(string(v), "/")
	}
	s, ok := r.subjects[id]
	if !ok {
		return
	}
	letter, err := codecs.ParseDeadLetter(&rec)
	if err != nil {
		letter = &codecs.DeadLetter{Reason: "no reason: " + err.Error()}
		var ev codecs.Event
		if codecs.Decode(&rec, &ev) == nil && ev.Type == codecs.TypeDeadLetter {
			letter = ev.Data.(*codecs.DeadLetter)
		}
	}
	s.deadLetters = append(s.deadLetters, letter.Reason)
}
