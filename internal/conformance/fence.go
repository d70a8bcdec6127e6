package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// fence returns when all that the script caused has been read. The answer to the first fence shows that the script's
// records were handled, but a dead letter of the same cut may still be on its way; the answer to the second is of a later
// cut, which starts when everything of the first is acknowledged. What a job causes goes from its log to that of the
// batches and back.
func (r *runner) fence(ctx context.Context) error {
	logs := []fenceLog{batchFence}
	if r.script.needs(codecs.GroupWorkflow) {
		logs = []fenceLog{jobFence, batchFence, jobFence, batchFence}
	}
	for _, l := range logs {
		for range 2 {
			if err := r.pass(ctx, l); err != nil {
				return err
			}
		}
	}
	if r.script.needs(codecs.GroupDispatcher) {
		if err := r.committed(ctx, codecs.GroupDispatcher, codecs.TopicDispatch); err != nil {
			return err
		}
	}
	if r.script.needs(codecs.GroupNotifier) {
		if err := r.committed(ctx, codecs.GroupNotifier, codecs.TopicEvents); err != nil {
			return err
		}
	}
	return r.drain(ctx)
}

// fenceLog is a log, what is sent to it, and the event that answers.
type fenceLog struct {
	topic  string
	send   [2]string // types
	data   [2]string
	answer string
}

var (
	batchFence = fenceLog{codecs.TopicControl, [2]string{codecs.TypeBatchStart, codecs.TypeBatchSeal}, [2]string{`{"run":"r"}`, `{"run":"r"}`}, codecs.TypeBatchCompleted}
	jobFence   = fenceLog{codecs.TopicJobs, [2]string{codecs.TypeJobRequested, codecs.TypeJobCommand},
		[2]string{`{"definition":{"name":"fence","version":1,"retention":1000,"steps":[{"name":"s","task":{"queue":%q}}]}}`, `{"id":"c","verb":"cancel"}`},
		codecs.TypeJobCancelled}
)

// pass sends a fence to each partition of a log and waits for the answers.
func (r *runner) pass(ctx context.Context, l fenceLog) error {
	r.passes++
	used := map[int32]bool{}
	var fences []string
	for i := 0; len(used) < int(r.partitions); i++ {
		id := fmt.Sprintf("%s-%s-fence-%d-%d", r.script.ID, r.cfg.Unique, r.passes, i)
		p := codecs.Partition([]byte(id), r.partitions)
		if used[p] {
			continue
		}
		used[p] = true
		fences = append(fences, id)
		r.subjects[id] = newSeen()
		var recs []*kgo.Record
		for i, typ := range l.send {
			data := l.data[i]
			if typ == codecs.TypeJobRequested {
				data = fmt.Sprintf(data, r.cfg.Queue)
			}
			recs = append(recs, r.record(l.topic, id, typ, []byte(data)))
		}
		if err := r.client.ProduceSync(ctx, recs...).FirstErr(); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
	}
	return r.await(ctx, "an answer to an empty batch or cancelled job sent last, "+l.answer+",", func() bool {
		for _, id := range fences {
			if len(r.subjects[id].events[l.answer]) == 0 {
				return false
			}
		}
		return true
	})
}

// committed returns when a role has handled all that stands in its log now: it commits after its outputs are in theirs.
func (r *runner) committed(ctx context.Context, role, log string) error {
	topic, group := codecs.Topic(r.cfg.Prefix, log), codecs.Group(r.cfg.Prefix, role)
	adm := kadm.NewClient(r.client)
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("end of %s: %w", topic, err)
	}
	var asked error
	err = r.await(ctx, "the commit of the end of "+topic+" by "+group, func() bool {
		at, err := adm.FetchOffsets(ctx, group)
		if err != nil {
			if !errors.Is(err, kerr.GroupIDNotFound) {
				asked = err
			}
			return asked != nil
		}
		done := true
		ends.Each(func(e kadm.ListedOffset) {
			o, _ := at.Lookup(topic, e.Partition)
			done = done && (e.Offset == 0 || o.At >= e.Offset)
		})
		return done
	})
	return errors.Join(err, asked)
}

// drain reads events and dead letters up to where they end now.
func (r *runner) drain(ctx context.Context) error {
	ends, err := kadm.NewClient(r.client).ListEndOffsets(ctx, r.topics()...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("end of the answers: %w", err)
	}
	return r.await(ctx, "the rest of the answers", func() bool {
		read := true
		ends.Each(func(o kadm.ListedOffset) { read = read && r.next[place{o.Topic, o.Partition}] >= o.Offset })
		return read
	})
}
