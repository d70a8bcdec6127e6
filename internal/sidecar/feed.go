package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// EventFeed reads a deployment's event topic, each stream on its own, without a consumer group.
type EventFeed struct {
	topic string
	admin *kadm.Client
	opts  []kgo.Opt
}

var _ Feed = (*EventFeed)(nil)

// NewEventFeed reads the events of a deployment: one client of these options per stream. admin belongs to the caller; it
// looks up where streams start.
func NewEventFeed(prefix string, admin *kgo.Client, opts ...kgo.Opt) *EventFeed {
	return &EventFeed{topic: codecs.Topic(prefix, codecs.TopicEvents), admin: kadm.NewClient(admin), opts: opts}
}

// Open finds the offsets to start at, then reads. A partition whose offset was deleted meanwhile starts at its beginning.
func (f *EventFeed) Open(ctx context.Context, from Cursor, fromStart bool) (Stream, error) {
	cursor, err := f.begin(ctx, from, fromStart)
	if err != nil {
		return nil, err
	}
	offsets := map[int32]kgo.Offset{}
	for p, o := range cursor {
		offsets[p] = kgo.NewOffset().At(o)
	}
	c, err := kgo.NewClient(append(append([]kgo.Opt{}, f.opts...), kgo.FetchMaxWait(feedWait),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{f.topic: offsets}))...)
	if err != nil {
		return nil, fmt.Errorf("event feed: %w", err)
	}
	return &feedStream{client: c, cursor: cursor}, nil
}

func (f *EventFeed) begin(ctx context.Context, from Cursor, fromStart bool) (Cursor, error) {
	starts, err := f.admin.ListStartOffsets(ctx, f.topic)
	if err != nil {
		return nil, fmt.Errorf("event feed: %w", err)
	}
	ends, err := f.admin.ListEndOffsets(ctx, f.topic)
	if err != nil {
		return nil, fmt.Errorf("event feed: %w", err)
	}
	if err := errors.Join(starts.Error(), ends.Error()); err != nil {
		return nil, fmt.Errorf("event feed: %w", err)
	}
	cursor := Cursor{}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(f.topic, end.Partition)
		at := end.Offset
		if fromStart {
			at = start.Offset
		}
		if o, ok := from[end.Partition]; ok {
			at = min(max(o, start.Offset), end.Offset)
		}
		cursor[end.Partition] = at
	})
	return cursor, nil
}

type feedStream struct {
	client *kgo.Client
	cursor Cursor
}

func (s *feedStream) Close() { s.client.Close() }

func (s *feedStream) Cursor() Cursor { return maps.Clone(s.cursor) }

func (s *feedStream) Next(ctx context.Context) ([]api.Event, error) {
	for {
		fetches := s.client.PollRecords(ctx, 512)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("event feed: %w", err)
		}
		var events []api.Event
		fetches.EachRecord(func(r *kgo.Record) {
			s.cursor[r.Partition] = r.Offset + 1
			if e, ok := eventOf(r); ok {
				events = append(events, e)
			}
		})
		if len(events) > 0 {
			return events, nil
		}
	}
}

// eventOf decodes a record; what is not an event of this release is left out.
func eventOf(r *kgo.Record) (api.Event, bool) {
	rec := codecs.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UnixMilli(),
		Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
	}
	var ev codecs.Event
	if err := codecs.Decode(&rec, &ev); err != nil {
		return api.Event{}, false
	}
	data := json.RawMessage("{}")
	if ev.Data != nil {
		b, err := codecs.JSON(ev.Data)
		if err != nil {
			return api.Event{}, false
		}
		data = b
	}
	subject := ev.Subject
	if subject == "" {
		subject = ev.Key
	}
	return api.Event{ID: ev.ID, Type: ev.Type, Subject: subject, Time: api.Int64(ev.Time),
		Partition: r.Partition, Offset: api.Int64(r.Offset), Data: data}, true
}
