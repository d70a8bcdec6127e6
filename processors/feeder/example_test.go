package feeder_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/topology"
)

// A feeder that dies goes on where it was: the next one is given the same input, and sends what is missing.
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
	b, err := broker.Start(broker.Config{Topics: []broker.Topic{{Name: "words", Partitions: 2}, {Name: "quiesce.control", Partitions: 1}}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	dir, err := os.MkdirTemp("", "feed")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	input := []string{"one", "two", "three", "four"}
	feed := func(words []string, seal bool) {
		f, err := feeder.New(feeder.Config{Topology: topo, Bootstrap: b.Bootstrap(), Batch: "numbers", Checkpoint: filepath.Join(dir, "numbers.quiesce")})
		if err != nil {
			log.Fatal(err)
		}
		if err := f.Start(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println("fed before:", f.Resumed())
		for _, w := range words {
			if _, err := f.Send(ctx, []byte(w), []byte(w)); err != nil {
				log.Fatal(err)
			}
		}
		if seal {
			total, err := f.Seal(ctx)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("sealed with", total)
		}
		if err := f.Flush(ctx); err != nil {
			log.Fatal(err)
		}
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
	feed(input[:2], false)
	feed(input, true)
	// Output:
	// fed before: 0
	// fed before: 2
	// sealed with 4
}
