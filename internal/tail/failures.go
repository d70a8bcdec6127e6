package tail

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// pause between two looks at the outcomes.
const pause = 5 * time.Millisecond

// Failures returns the outcomes of n failed tasks of a batch, by index; run "" = of whatever run. They are on their way when the end of the batch is
// seen: another topic, acked at another moment. So it reads until there are n.
func Failures(ctx context.Context, cfg Config, batch, run string, n int) (map[uint32]*codecs.TaskOutcome, error) {
	for {
		found, err := failures(ctx, cfg, batch, run)
		if err != nil || len(found) >= n {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("batch %s: %d of %d reasons are there: %w", batch, len(found), n, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// failures reads what the outcomes topic has now.
func failures(ctx context.Context, cfg Config, batch, run string) (map[uint32]*codecs.TaskOutcome, error) {
	found := map[uint32]*codecs.TaskOutcome{}
	prefix := batch + "\x00"
	if run != "" {
		prefix += run + "\x00"
	}
	err := Read(ctx, cfg, codecs.TopicOutcomes, func(k *kgo.Record) error {
		if k.Value == nil || !strings.HasPrefix(string(k.Key), prefix) {
			return nil
		}
		ev, err := Decode(k)
		if err != nil {
			return err
		}
		o, ok := ev.Data.(*codecs.TaskOutcome)
		if !ok || !codecs.IsFailure(o.Outcome) {
			return nil
		}
		for i := o.Index; i <= max(o.Index, o.Last); i++ {
			found[i] = o
		}
		return nil
	})
	return found, err
}
