package bench

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// awaitResults reads a topic of lifecycle events until n batches have ended.
func awaitResults(ctx context.Context, bootstrap, topic string, n int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100e6))
	if err != nil {
		return fmt.Errorf("await results: %w", err)
	}
	defer client.Close()
	seen := map[string]bool{}
	for len(seen) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("await results: %d of %d batches ended: %w", len(seen), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if id := eventID(r); terminal("", id) {
				seen[id] = true
			}
		})
	}
	return nil
}

func eventID(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "ce_id" {
			return string(h.Value)
		}
	}
	return ""
}
