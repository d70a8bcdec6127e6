package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// facts are what the brokers say about the topics.
type facts struct {
	counts topology.Partitions // declared where declared
	ids    map[string]codecs.TopicID
	sizes  map[string]int // max.message.bytes of the topics that are written, where it may be asked
}

// defaultSize is the max.message.bytes of a topic that nobody has configured, and what clients send at most.
const defaultSize = 1_000_012

// size is the largest batch of records that a topic takes.
func (f *facts) size(topic string) int {
	if n := f.sizes[topic]; n > 0 {
		return n
	}
	return defaultSize
}

// readFacts looks the topology's topics up. The stage's own must exist and be at least as large as declared.
func readFacts(ctx context.Context, admin *kadm.Client, cfg Config) (facts, error) {
	f := facts{counts: topology.Partitions{}, ids: map[string]codecs.TopicID{}}
	s := cfg.Topology.Stages[cfg.Stage]
	own := append(append([]string{}, s.In...), s.Out...)
	var names []string
	for name := range cfg.Topology.Topics {
		names = append(names, name)
	}
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return f, fmt.Errorf("look topics up: %w", err)
	}
	for _, name := range names {
		d := details[name]
		f.ids[name] = codecs.TopicID(d.ID)
		f.counts[name] = cfg.Topology.Topics[name].Partitions
		if f.counts[name] == 0 {
			f.counts[name] = int32(len(d.Partitions))
		}
	}
	for _, name := range own {
		d, declared := details[name], cfg.Topology.Topics[name].Partitions
		if d.Err != nil || len(d.Partitions) == 0 {
			return f, fmt.Errorf("topic %s: not there: %w", name, errors.Join(d.Err, errNoTopic))
		}
		if int32(len(d.Partitions)) < declared {
			return f, permanent{fmt.Errorf("topic %s has %d partitions, %d are declared", name, len(d.Partitions), declared)}
		}
	}
	written := slices.Concat(s.Out, []string{codecs.Topic(cfg.Prefix, codecs.TopicDeadLetter)})
	if s.Table {
		written = append(written, s.Group+"-table")
	}
	f.sizes = readSizes(ctx, admin, cfg, written)
	return f, nil
}

// readSizes asks for the max.message.bytes of topics. A stage that may not ask goes by the default.
func readSizes(ctx context.Context, admin *kadm.Client, cfg Config, names []string) map[string]int {
	resources, err := admin.DescribeTopicConfigs(ctx, names...)
	sizes := map[string]int{}
	for _, r := range resources {
		err = errors.Join(err, r.Err)
		for _, c := range r.Configs {
			if n, bad := strconv.Atoi(c.MaybeValue()); c.Key == topology.MaxMessageBytes && bad == nil {
				sizes[r.Name] = min(n, 1<<30)
			}
		}
	}
	if err != nil {
		cfg.Log.Warn("settings of topics cannot be read: records may be as large as the default", "stage", cfg.Stage, "error", err)
	}
	return sizes
}

var errNoTopic = errors.New("create the topics of the topology first")
