package stage_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

// A service that turns words into upper case. Its batch is complete when its last record was handled; here the report
// that says so is read from the control topic, where the controller reads it.
func Example() {
	topo, err := topology.Load([]byte(`
topology: shout
version: 1
source: words
topics: {words: {partitions: 2}}
stages:
  upper: {in: [words], group: shout.upper}
`), "ledger")
	if err != nil {
		log.Fatal(err)
	}
	b, err := broker.Start(broker.Config{Topics: []broker.Topic{{Name: "words", Partitions: 2}, {Name: "quiesce.control", Partitions: 1},
		{Name: "quiesce.status", Partitions: 1}, {Name: "quiesce.dead-letter", Partitions: 1}}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- stage.Run(ctx, stage.Config{Topology: topo, Stage: "upper", Bootstrap: b.Bootstrap(),
			Handler: func(_ context.Context, r *stage.Record) ([]stage.Output, error) {
				if len(r.Value) == 0 {
					return nil, stage.NoRetry(fmt.Errorf("no word"))
				}
				_ = strings.ToUpper(string(r.Value))
				return nil, nil
			}})
	}()

	f, err := feeder.New(feeder.Config{Topology: topo, Bootstrap: b.Bootstrap(), Batch: "greetings", Run: "r1"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for _, word := range []string{"hello", "", "world"} {
		if _, err := f.Send(ctx, []byte(word), []byte(word)); err != nil {
			log.Fatal(err)
		}
	}
	total, err := f.Seal(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("fed:", total)
	for _, line := range outcomes(ctx, b.Bootstrap(), int(total)) {
		fmt.Println(line)
	}
	stop()
	fmt.Println("stopped:", <-done)
	// Output:
	// fed: 3
	// task 0: ok
	// task 1: failed: no word
	// task 2: ok
	// stopped: <nil>
}

// outcomes reads the reports of n tasks.
func outcomes(ctx context.Context, bootstrap string, n int) []string {
	c, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics("quiesce.control"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	lines := make([]string, n)
	for left := n; left > 0; {
		c.PollFetches(ctx).EachRecord(func(k *kgo.Record) {
			rec := codecs.Record{Key: k.Key, Value: k.Value}
			for _, h := range k.Headers {
				rec.Headers = append(rec.Headers, codecs.Header(h))
			}
			var ev codecs.Event
			if err := codecs.Decode(&rec, &ev); err != nil {
				log.Fatal(err)
			}
			report, _ := ev.Data.(*codecs.BatchReport)
			for _, it := range report.GetItems() {
				err := codecs.ForEachRange(it, func(first, last uint32) {
					for i := first; i <= last; i++ {
						lines[i] = strings.TrimSuffix(fmt.Sprintf("task %d: %s: %s", i, it.Outcome, it.Reason), ": ")
						left--
					}
				})
				if err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	return lines
}
