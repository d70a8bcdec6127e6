package demo

import (
	"context"
	"strings"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/tail"
)

// ended is the completion event of a batch and when it was here.
type ended struct {
	at    time.Time
	event *codecs.BatchEvent
}

// follow reads lifecycle events until the batch has ended.
func follow(ctx context.Context, log tail.Config, batch string) (end *ended, err error) {
	err = tail.Follow(ctx, log, codecs.TopicEvents, func(ev *codecs.Event) (bool, error) {
		if data, ok := ev.Data.(*codecs.BatchEvent); ok && ev.Key == batch && strings.HasSuffix(ev.ID, "/terminal") {
			end = &ended{at: time.Now(), event: data}
		}
		return end != nil, nil
	})
	return end, err
}

// failures reads the reasons of the tasks that failed; paths are the tasks by index.
func failures(ctx context.Context, log tail.Config, batch, run string, paths []string, failed int) ([]Failure, error) {
	found, err := tail.Failures(ctx, log, batch, run, failed)
	if err != nil {
		return nil, err
	}
	var all []Failure
	for i, o := range found {
		if int(i) >= len(paths) {
			continue
		}
		stage, _, _ := strings.Cut(o.Reporter, "@")
		all = append(all, Failure{Path: paths[i], Stage: stage, Reason: o.Reason})
	}
	return all, nil
}
