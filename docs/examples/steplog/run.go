package main

import (
	"context"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// run follows the events until ctx ends.
func run(ctx context.Context, w io.Writer, bootstrap, prefix string) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(codecs.Topic(prefix, codecs.TopicEvents)))
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		f := c.PollFetches(ctx)
		if err := f.Err0(); err != nil {
			return err
		}
		f.EachRecord(func(r *kgo.Record) { line(w, r) })
	}
}
