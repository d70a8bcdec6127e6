package feeder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// counts are the topics' partition counts: those of the first process, or what the brokers say now.
func (f *Feeder) counts(ctx context.Context) (topology.Partitions, error) {
	if f.file.Plan != "" {
		p, err := codecs.ParsePlan(f.file.Plan)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		return p.Partitions, nil
	}
	var names []string
	for name := range f.cfg.Topology.Topics {
		names = append(names, name)
	}
	for began := time.Now(); ; {
		details, err := kadm.NewClient(f.client).ListTopics(ctx, names...)
		if err != nil {
			return nil, fmt.Errorf("look topics up: %w", err)
		}
		missing := slices.ContainsFunc(names, func(name string) bool { return len(details[name].Partitions) == 0 })
		if !missing || time.Since(began) > appear {
			return f.cfg.Topology.Resolve(func(topic string) (int32, error) { return int32(len(details[topic].Partitions)), nil })
		}
		if err := pause(ctx, appear/50); err != nil {
			return nil, err
		}
	}
}

// appear is how long a topic that was just created may take until every broker knows it.
const appear = 5 * time.Second

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
