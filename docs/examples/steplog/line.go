package main

import (
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
)

// line prints a step that has ended; other events, and what does not decode, are somebody else's.
func line(w io.Writer, r *kgo.Record) {
	rec := codecs.Record{Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
	}
	var ev codecs.Event
	if codecs.Decode(&rec, &ev) != nil || ev.Type != codecs.TypeStepCompleted {
		return
	}
	d := ev.Data.(*codecs.JobEvent)
	fmt.Fprintln(w, d.Job, d.Step, d.StepState, time.Duration(d.EndedAt-d.StartedAt)*time.Millisecond)
}
