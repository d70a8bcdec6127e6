package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/codecs"
)

// commitEvery commits what became durable until ctx is done.
func (s *session) commitEvery(ctx context.Context) {
	t := time.NewTicker(s.cfg.Flow.CommitEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		s.mu.Lock()
		units := maps.Clone(s.units)
		s.mu.Unlock()
		err := s.commit(ctx, units)
		switch {
		case errors.Is(err, errHook):
			s.fail(err)
			return
		case err != nil && ctx.Err() == nil:
			s.cfg.Log.Warn("commit failed, it is tried again", "stage", s.cfg.Stage, "error", err)
		}
	}
}

// errHook marks an error that a hook asked for.
var errHook = errors.New("ended by a hook")

// commit commits the durable position of each unit that has a new one, with its state in the metadata.
func (s *session) commit(ctx context.Context, units map[partition]*unit) error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	states := map[partition]*codecs.UnitState{}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	texts := map[partition]string{}
	for p, u := range units {
		if u.dead.Load() {
			continue
		}
		st, text, err := u.book.Durable(ctx)
		if err != nil {
			return err
		}
		if st == nil {
			continue
		}
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		states[p], texts[p], offsets[p.topic][p.id] = st, text, kgo.EpochOffset{Epoch: -1, Offset: st.Position}
	}
	if len(states) == 0 {
		return nil
	}
	if err := s.commitOffsets(ctx, offsets, texts); err != nil {
		return fmt.Errorf("commit %d partitions: %w", len(states), err)
	}
	for p, st := range states {
		units[p].book.Committed(st)
	}
	if err := s.cfg.Hook(PointCommitted); err != nil {
		return errors.Join(errHook, err)
	}
	return nil
}

func (s *session) commitOffsets(ctx context.Context, offsets map[string]map[int32]kgo.EpochOffset, texts map[partition]string) error {
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			t := &req.Topics[i]
			for j := range t.Partitions {
				p := &t.Partitions[j]
				text, ok := texts[partition{t.Topic, p.Partition}]
				if !ok {
					return fmt.Errorf("no state for %s/%d", t.Topic, p.Partition)
				}
				p.Metadata = &text
			}
		}
		return nil
	})
	var failed error
	s.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = err
		if err != nil || resp == nil {
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s/%d: %w", t.Topic, p.Partition, err))
				}
			}
		}
	})
	return failed
}
