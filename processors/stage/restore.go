package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
)

// restore makes the units of partitions from what the last owners committed. A unit whose state and input do not fit
// together (a tool moved the offset, records were deleted unread, the topic is another one) is reset: see reset.
func (d *Desk) restore(ctx context.Context, want []partition) (map[partition]*Book, error) {
	var topics []string
	for _, p := range want {
		if !slices.Contains(topics, p.topic) {
			topics = append(topics, p.topic)
		}
	}
	books := map[partition]*Book{}
	if len(topics) == 0 {
		return books, nil
	}
	committed, err := d.admin.FetchOffsetsForTopics(ctx, d.group, topics...)
	if err == nil {
		err = committed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets: %w", err)
	}
	starts, err := d.admin.ListStartOffsets(ctx, topics...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("first offsets: %w", err)
	}
	ends, err := d.admin.ListEndOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end offsets: %w", err)
	}
	for _, p := range want {
		first, _ := starts.Lookup(p.topic, p.id)
		end, _ := ends.Lookup(p.topic, p.id)
		commit, _ := committed.Lookup(p.topic, p.id)
		machine, fresh, err := d.restoreUnit(ctx, p, commit, first.Offset, end.Offset)
		if err != nil {
			return nil, fmt.Errorf("%s/%d: %w", p.topic, p.id, err)
		}
		books[p] = d.newBook(p, machine)
		if fresh {
			books[p].begin()
		}
	}
	return books, nil
}

// restoreUnit makes one unit. first and end bound what can be read. fresh says that no state of it is committed yet.
func (d *Desk) restoreUnit(ctx context.Context, p partition, commit kadm.OffsetResponse, first, end int64) (u *markers.Unit, fresh bool, err error) {
	cfg := d.unitConfig(p)
	id := d.facts.ids[p.topic]
	from, reason := first, ""
	if commit.At < 0 || commit.Topic == "" { // nobody has ever read for this group, as far as is known
		if first > 0 {
			reason = fmt.Sprintf("no committed offset, and records below %d were deleted unread", first)
		}
	} else {
		state, err := d.readState(ctx, cfg.Unit, id, commit.Metadata)
		switch {
		case errors.Is(err, errMetadata):
			from, reason = min(max(commit.At, first), end), err.Error()
		case err != nil:
			return nil, false, err
		case state.Position < first:
			reason = fmt.Sprintf("records from %d to %d were deleted unread", state.Position, first)
		case state.Position > end:
			reason = fmt.Sprintf("position %d is beyond the end of the partition, %d", state.Position, end)
		default:
			u, err := markers.Load(cfg, state)
			return u, false, err
		}
	}
	if reason != "" {
		if err := d.reset(ctx, cfg.Unit, id, from, reason); err != nil {
			return nil, false, err
		}
	}
	u, err = markers.New(cfg, from)
	return u, true, err
}

// readState reads the state that a commit carries or points at. An error that is errMetadata means that there is none.
func (d *Desk) readState(ctx context.Context, name *codecs.Unit, id codecs.TopicID, text string) (*codecs.UnitState, error) {
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
	best, err := d.newestState(ctx, name, m.at)
	if err != nil {
		return nil, err
	}
	if best == nil {
		return nil, fmt.Errorf("%w: no state of %s in %s from %d:%d on", errMetadata, name.Path(), d.unitsTopic(), m.at.partition, m.at.offset)
	}
	return best, nil
}

// newestState reads the topic of units from a pointer to the end and returns the unit's state with the highest position:
// the cleaner may have removed the record that is pointed at, never the last one of its key.
func (d *Desk) newestState(ctx context.Context, name *codecs.Unit, at pointer) (*codecs.UnitState, error) {
	topic := d.unitsTopic()
	ends, err := d.admin.ListEndOffsets(ctx, topic)
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
	opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(d.cfg.Bootstrap, ",")...), kgo.ClientID(d.cfg.ClientID)}
	opts = append(opts, d.cfg.Options...)
	reader, err := kgo.NewClient(append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {at.partition: kgo.NewOffset().At(at.offset)}}))...)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	key := d.unitKey(name)
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
				bad = fmt.Errorf("%w: %s %d:%d: %w", errMetadata, topic, r.Partition, r.Offset, err)
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
func (d *Desk) reset(ctx context.Context, name *codecs.Unit, id codecs.TopicID, from int64, reason string) error {
	open, err := d.status.open(ctx)
	if err != nil {
		return fmt.Errorf("reset: which batches are open: %w", err)
	}
	level := slog.LevelWarn
	if len(open) > 0 {
		level = slog.LevelError
	}
	d.cfg.Log.Log(ctx, level, "unit reset: its state is not known", "stage", name.Stage, "topic", name.Topic,
		"partition", name.Partition, "offset", from, "reason", reason, "open_batches", len(open))
	var recs []*kgo.Record
	for _, b := range open {
		ev := codecs.Event{Type: codecs.TypeBatchCommand, ID: fmt.Sprintf("%s/%s/%d/reset/%s", name.Path(), id, from, b.run),
			Data: &codecs.BatchCommand{Id: fmt.Sprintf("reset-%s-%d-%d", name.Stage, name.Partition, from), Verb: "inconsistent",
				Args: &codecs.CommandArgs{Run: b.run,
					Difference: fmt.Sprintf("unit %s was reset to offset %d: %s", name.Path(), from, reason)}}}
		rec, err := d.encoder.Encode(d.control, b.batch, &ev)
		if err != nil {
			return err
		}
		recs = append(recs, toKgo(&rec))
	}
	return produceAll(d.ctx, d.client, recs)
}
