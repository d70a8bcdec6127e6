package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// facts are what the brokers say about the topics.
type facts struct {
	counts topology.Partitions // declared where declared
	ids    map[string]codecs.TopicID
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
	return f, nil
}

var errNoTopic = errors.New("create the topics of the topology first")
