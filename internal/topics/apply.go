package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/topology"
)

// Apply creates the topics that are missing, waits until every one can be read and written, and verifies all. It
// returns what it found before; the error is a *MismatchError when topics that exist break a guarantee (those that were
// missing are created all the same).
func (m *Manager) Apply(ctx context.Context, specs []topology.Spec) (Plan, error) {
	// The broker that answers may be one that has not heard yet of a topic which another one knows.
	var plan Plan
	err := m.heard(ctx, func() (err error) { plan, err = m.Plan(ctx, specs); return err })
	if err != nil {
		return plan, err
	}
	if err := m.create(ctx, plan.Missing); err != nil {
		return plan, err
	}
	if err := m.await(ctx, plan.Missing); err != nil {
		return plan, err
	}
	return plan, m.heard(ctx, func() error { return m.Verify(ctx, specs) })
}

// heard repeats ask while its answer is that a topic is not there, and returns the last answer.
func (m *Manager) heard(ctx context.Context, ask func() error) error {
	var err error
	late := m.until(ctx, func() []string {
		err = ask()
		var mismatch *MismatchError
		if isMissing(err) || errors.As(err, &mismatch) && len(mismatch.Missing) > 0 {
			return []string{err.Error()}
		}
		return nil
	})
	if late != nil {
		return late
	}
	return err
}

func isMissing(err error) bool { return errors.Is(err, kerr.UnknownTopicOrPartition) }

// Verify reports every topic that is missing or breaks a guarantee, in one *MismatchError.
func (m *Manager) Verify(ctx context.Context, specs []topology.Spec) error {
	plan, err := m.Plan(ctx, specs)
	if err != nil {
		return err
	}
	if len(plan.Missing) == 0 && len(plan.Harmful()) == 0 {
		return nil
	}
	return &MismatchError{Missing: plan.Missing, Harmful: plan.Harmful()}
}

// MismatchError names everything that keeps a deployment from starting on these topics.
type MismatchError struct {
	Missing []topology.Spec
	Harmful []Difference
}

// Error has one line for each mismatch.
func (e *MismatchError) Error() string {
	lines := []string{fmt.Sprintf("%d mismatches between topics and deployment:", len(e.Missing)+len(e.Harmful))}
	for _, s := range e.Missing {
		lines = append(lines, s.Name+": does not exist")
	}
	for _, d := range e.Harmful {
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "\n  ")
}

// create asks for all topics in one request. A topic that somebody else made meanwhile is fine.
func (m *Manager) create(ctx context.Context, specs []topology.Spec) error {
	if len(specs) == 0 {
		return nil
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(m.cfg.Ready.Milliseconds())
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.Name, s.Partitions, s.Replication
		for _, key := range sortedKeys(s.Configs) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = key, kmsg.StringPtr(s.Configs[key])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, m.cfg.Client)
	if err != nil {
		return fmt.Errorf("create %d topics: %w", len(specs), err)
	}
	var errs []error
	for _, t := range resp.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
			continue
		}
		if t.ErrorMessage != nil && *t.ErrorMessage != "" {
			err = fmt.Errorf("%w: %s", err, *t.ErrorMessage)
		}
		errs = append(errs, fmt.Errorf("create topic %s: %w", t.Topic, err))
	}
	return errors.Join(errs...)
}

// await returns when every partition of the topics has a leader that answers. Brokers learn of a new topic some time
// after its creation was answered.
func (m *Manager) await(ctx context.Context, specs []topology.Spec) error {
	if len(specs) == 0 {
		return nil
	}
	return m.until(ctx, func() []string { return m.unready(ctx, specs) })
}

// until calls open until it names nothing, at most for the time that new topics may take.
func (m *Manager) until(ctx context.Context, open func() []string) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Ready)
	defer cancel()
	tick := time.NewTicker(m.cfg.Poll)
	defer tick.Stop()
	for {
		left := open()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for new topics: %w\n  %s", context.Cause(ctx), strings.Join(left, "\n  "))
		case <-tick.C:
		}
	}
}

// unready says what is not usable yet, one line a topic.
func (m *Manager) unready(ctx context.Context, specs []topology.Spec) []string {
	names := specNames(specs)
	found, err := m.describe(ctx, names...)
	if err != nil {
		return []string{err.Error()}
	}
	var open []string
	for _, name := range names {
		if t := found[name]; t.partitions == 0 || t.leaders < t.partitions {
			open = append(open, fmt.Sprintf("%s: %d of %d partitions have a leader", name, t.leaders, t.partitions))
		}
	}
	if len(open) > 0 {
		return open
	}
	ends, err := m.admin.ListEndOffsets(ctx, names...) // asks each leader
	if err != nil {
		return []string{err.Error()}
	}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			open = append(open, fmt.Sprintf("%s/%d: %v", o.Topic, o.Partition, o.Err))
		}
	})
	slices.Sort(open)
	return open
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
