package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
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
			if id := eventID(r); terminal(id) {
				seen[id] = true
			}
		})
	}
	return nil
}

func eventID(r *kgo.Record) string { return header(r, codecs.HeaderID) }

// eventType is the short name of an event's type.
func eventType(r *kgo.Record) string {
	name, err := codecs.TypeName(header(r, codecs.HeaderType))
	if err != nil {
		return ""
	}
	return name
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// terminal says whether the id is that of an event that ends a batch.
func terminal(id string) bool { return strings.HasSuffix(id, "/terminal") }
