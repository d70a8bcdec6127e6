package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
)

// restore makes the units of partitions from what the last owners committed. A unit whose state and input do not fit
// together (a tool moved the offset, records were deleted unread, the topic is another one) is reset: see reset.
func (s *session) restore(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[partition]*unit, error) {
	var topics []string
	for topic := range offsets {
		topics = append(topics, topic)
	}
	units := map[partition]*unit{}
	if len(topics) == 0 {
		return units, nil
	}
	committed, err := s.admin.FetchOffsetsForTopics(ctx, s.group, topics...)
	if err == nil {
		err = committed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets: %w", err)
	}
	starts, err := s.admin.ListStartOffsets(ctx, topics...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("first offsets: %w", err)
	}
	ends, err := s.admin.ListEndOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end offsets: %w", err)
	}
	for topic, parts := range offsets {
		for id := range parts {
			p := partition{topic, id}
			first, _ := starts.Lookup(topic, id)
			end, _ := ends.Lookup(topic, id)
			commit, _ := committed.Lookup(topic, id)
			if units[p], err = s.restoreUnit(ctx, p, commit, first.Offset, end.Offset); err != nil {
				return nil, fmt.Errorf("%s/%d: %w", topic, id, err)
			}
		}
	}
	return units, nil
}

// restoreUnit makes one unit. first and end bound what can be read.
func (s *session) restoreUnit(ctx context.Context, p partition, commit kadm.OffsetResponse, first, end int64) (*unit, error) {
	cfg := s.unitConfig(p)
	id := s.facts.ids[p.topic]
	if commit.At < 0 || commit.Topic == "" { // nobody has ever read for this group
		machine, err := markers.New(cfg, first)
		if err != nil {
			return nil, err
		}
		return newUnit(s, cfg.Unit, id, machine), nil
	}
	state, err := s.readState(ctx, cfg.Unit, id, commit.Metadata)
	reason := ""
	switch {
	case errors.Is(err, errMetadata):
		reason = err.Error()
	case err != nil:
		return nil, err
	case state.Position < first:
		reason = fmt.Sprintf("records from %d to %d were deleted unread", state.Position, first)
	case state.Position > end:
		reason = fmt.Sprintf("position %d is beyond the end of the partition, %d", state.Position, end)
	default:
		machine, err := markers.Load(cfg, state)
		if err != nil {
			return nil, err
		}
		return newUnit(s, cfg.Unit, id, machine), nil
	}
	from := min(max(commit.At, first), end)
	if state != nil {
		from = first
	}
	if err := s.reset(ctx, cfg.Unit, id, from, reason); err != nil {
		return nil, err
	}
	machine, err := markers.New(cfg, from)
	if err != nil {
		return nil, err
	}
	return newUnit(s, cfg.Unit, id, machine), nil
}

// readState reads the state that a commit carries or points at. An error that is errMetadata means that there is none.
func (s *session) readState(ctx context.Context, name *codecs.Unit, id codecs.TopicID, text string) (*codecs.UnitState, error) {
	m, err := parseMetadata(text)
	if err != nil {
		return nil, err
	}
	if m.topicID != id {
		return nil, fmt.Errorf("%w: it is about topic id %s, the topic is %s now", errMetadata, m.topicID, id)
	}
	if m.state != nil {
		return m.state, nil
	}
	best, err := s.newestState(ctx, name, m.at)
	if err != nil {
		return nil, err
	}
	if best == nil {
		return nil, fmt.Errorf("%w: no state of %s in %s from %d:%d on", errMetadata, name.Path(), s.unitsTopic(), m.at.partition, m.at.offset)
	}
	return best, nil
}

// newestState reads the topic of units from a pointer to the end and returns the unit's state with the highest position:
// the cleaner may have removed the record that is pointed at, never the last one of its key.
func (s *session) newestState(ctx context.Context, name *codecs.Unit, at pointer) (*codecs.UnitState, error) {
	topic := s.unitsTopic()
	ends, err := s.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end of %s: %w", topic, err)
	}
	end, _ := ends.Lookup(topic, at.partition)
	var best *codecs.UnitState
	if at.offset >= end.Offset {
		return nil, nil
	}
	opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(s.cfg.Bootstrap, ",")...), kgo.ClientID(s.cfg.ClientID)}
	opts = append(opts, s.cfg.Options...)
	reader, err := kgo.NewClient(append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {at.partition: kgo.NewOffset().At(at.offset)}}))...)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	key := s.unitKey(name)
	for next := at.offset; next < end.Offset; {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		var bad error
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if string(r.Key) != key || len(r.Value) == 0 {
				return
			}
			st := &codecs.UnitState{}
			if err := proto.Unmarshal(r.Value, st); err != nil {
				bad = fmt.Errorf("%w: %s %d:%d: %v", errMetadata, topic, r.Partition, r.Offset, err)
				return
			}
			if best == nil || st.Position > best.Position {
				best = st
			}
		})
		if bad != nil {
			return nil, bad
		}
	}
	return best, nil
}

// reset gives a unit up whose state is not known at the position from which it goes on: records may have been passed
// over. Nothing that is open and could have touched the unit may be trusted any more, and the controller is told so,
// before the unit handles anything.
func (s *session) reset(ctx context.Context, name *codecs.Unit, id codecs.TopicID, from int64, reason string) error {
	s.cfg.Log.Error("unit reset: its state is not known", "stage", name.Stage, "topic", name.Topic, "partition", name.Partition,
		"offset", from, "reason", reason)
	open, err := s.status.open(ctx)
	if err != nil {
		return fmt.Errorf("reset: which batches are open: %w", err)
	}
	var recs []*kgo.Record
	for _, b := range open {
		ev := codecs.Event{Type: codecs.TypeBatchCommand, ID: fmt.Sprintf("%s/%s/%d/reset/%s", name.Path(), id, from, b.run),
			Data: &codecs.BatchCommand{Id: fmt.Sprintf("reset-%s-%d-%d", name.Stage, name.Partition, from), Verb: "inconsistent",
				Args: &codecs.CommandArgs{Run: b.run,
					Difference: fmt.Sprintf("unit %s was reset to offset %d: %s", name.Path(), from, reason)}}}
		rec, err := s.encoder.Encode(s.control, b.batch, &ev)
		if err != nil {
			return err
		}
		recs = append(recs, toKgo(&rec))
	}
	return produceAll(s.produceCtx, s.client, recs)
}

// deadLetter makes the dead letter of a record.
func (s *session) deadLetter(rec *codecs.Record, id codecs.TopicID, reason string) *kgo.Record {
	d := codecs.NewDeadLetter(codecs.Topic(s.cfg.Prefix, codecs.TopicDeadLetter), rec, id, clip(reason))
	return toKgo(&d)
}
