package conformance

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/codecs"
)

// fence returns when all that the script caused has been read. The answer to the first fence shows that the script's
// records were handled, but a dead letter of the same cut may still be on its way; the answer to the second is of a later
// cut, which starts when everything of the first is acknowledged.
func (r *runner) fence(ctx context.Context) error {
	for n := range 2 {
		if err := r.pass(ctx, n); err != nil {
			return err
		}
	}
	return r.drain(ctx)
}

// pass sends one batch without tasks to each partition and waits for their ends.
func (r *runner) pass(ctx context.Context, n int) error {
	used := map[int32]bool{}
	var fences []string
	for i := 0; len(used) < int(r.partitions); i++ {
		id := fmt.Sprintf("%s-%s-fence-%d-%d", r.script.ID, r.cfg.Unique, n, i)
		p := codecs.Partition([]byte(id), r.partitions)
		if used[p] {
			continue
		}
		used[p] = true
		fences = append(fences, id)
		r.batches[id] = newSeen()
		err := r.client.ProduceSync(ctx, r.record(id, codecs.TypeBatchStart, []byte(`{"run":"r"}`)),
			r.record(id, codecs.TypeBatchSeal, []byte(`{"run":"r"}`))).FirstErr()
		if err != nil {
			return fmt.Errorf("fence: %w", err)
		}
	}
	return r.await(ctx, "an answer of the controller to an empty batch sent last", func() bool {
		for _, id := range fences {
			if len(r.batches[id].events[codecs.TypeBatchCompleted]) == 0 {
				return false
			}
		}
		return true
	})
}

// drain reads events and dead letters up to where they end now.
func (r *runner) drain(ctx context.Context) error {
	topics := []string{codecs.Topic(r.cfg.Prefix, codecs.TopicEvents), codecs.Topic(r.cfg.Prefix, codecs.TopicDeadLetter)}
	ends, err := kadm.NewClient(r.client).ListEndOffsets(ctx, topics...)
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
