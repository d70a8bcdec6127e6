package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Groups asks Kafka about topics and consumer groups.
type Groups interface {
	// Partitions returns the number of partitions of a topic; 0 = it does not exist.
	Partitions(ctx context.Context, topic string) (int32, error)
	// Group returns what a group has read of its input topics and who reads it now.
	Group(ctx context.Context, group string, topics []string) (*Group, error)
}

// Group is one consumer group.
type Group struct {
	State   string // as Kafka names it: Stable, Empty, Dead, PreparingRebalance ...
	Members int
	Inputs  []Input // by topic, then partition
}

// Input is one partition that a group reads.
type Input struct {
	Topic      string
	Partition  int32
	Committed  int64 // -1 = nothing yet
	Start, End int64 // first offset, high watermark
	Client     string
	Host       string // of the member that owns it; "" = nobody
}

// Lag is the number of offsets that are not committed.
func (u Input) Lag() int64 { return max(0, u.End-max(u.Committed, u.Start)) }

// KafkaGroups asks over the admin interface.
type KafkaGroups struct{ admin *kadm.Client }

var _ Groups = (*KafkaGroups)(nil)

// NewKafkaGroups uses a client that the caller owns.
func NewKafkaGroups(c *kgo.Client) *KafkaGroups { return &KafkaGroups{admin: kadm.NewClient(c)} }

// Partitions asks the metadata.
func (k *KafkaGroups) Partitions(ctx context.Context, topic string) (int32, error) {
	return partitionCount(ctx, k.admin, topic)
}

// Group reads the committed offsets before the ends, so that a lag is never too small.
func (k *KafkaGroups) Group(ctx context.Context, group string, topics []string) (*Group, error) {
	committed, err := k.committed(ctx, group, topics)
	if errors.Is(err, kerr.GroupIDNotFound) {
		err = nil // nobody has ever joined it: nothing is committed
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: committed offsets: %w", group, err)
	}
	starts, err := k.admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("group %s: start offsets: %w", group, err)
	}
	ends, err := k.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("group %s: end offsets: %w", group, err)
	}
	g := &Group{}
	owners, err := k.owners(ctx, group, g)
	if err != nil {
		return nil, err
	}
	if err := ends.Error(); err != nil {
		return nil, fmt.Errorf("group %s: end offsets: %w", group, err)
	}
	for _, end := range ends.Offsets().Sorted() {
		u := Input{Topic: end.Topic, Partition: end.Partition, Committed: -1, End: end.At}
		if c, ok := committed.Lookup(end.Topic, end.Partition); ok && c.Err == nil {
			u.Committed = c.At
		}
		if s, ok := starts.Lookup(end.Topic, end.Partition); ok {
			u.Start = s.Offset
		}
		m := owners[tp{end.Topic, end.Partition}]
		u.Client, u.Host = m[0], m[1]
		g.Inputs = append(g.Inputs, u)
	}
	return g, nil
}

// committed asks the coordinator, again while it is being found: the first question of a cluster makes it.
func (k *KafkaGroups) committed(ctx context.Context, group string, topics []string) (kadm.OffsetResponses, error) {
	tick := time.NewTicker(coordinatorWait)
	defer tick.Stop()
	for {
		committed, err := k.admin.FetchOffsetsForTopics(ctx, group, topics...)
		if !kerr.IsRetriable(err) {
			return committed, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

const coordinatorWait = 100 * time.Millisecond

type tp struct {
	topic     string
	partition int32
}

// owners describes the group in the protocol that it speaks and returns client id and host by partition.
func (k *KafkaGroups) owners(ctx context.Context, group string, g *Group) (map[tp][2]string, error) {
	described, err := k.admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", group, err)
	}
	owners := map[tp][2]string{}
	d := described[group]
	g.State, g.Members = d.State, len(d.Members)
	for _, m := range d.Members {
		assigned, ok := m.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, t := range assigned.Topics {
			for _, p := range t.Partitions {
				owners[tp{t.Topic, p}] = [2]string{m.ClientID, m.ClientHost}
			}
		}
	}
	if g.Members > 0 {
		return owners, nil
	}
	return owners, k.modernOwners(ctx, group, g, owners)
}

// modernOwners fills in what only the newer description knows: groups of the consumer protocol.
func (k *KafkaGroups) modernOwners(ctx context.Context, group string, g *Group, owners map[tp][2]string) error {
	described, err := k.admin.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return nil // an older broker, or a group of the classic protocol: what is known stands
	}
	d, ok := described[group]
	if !ok || d.Err != nil {
		return nil
	}
	g.State, g.Members = d.State, len(d.Members)
	for _, m := range d.Members {
		for topic, ps := range m.Assignment {
			for p := range ps {
				owners[tp{topic, p}] = [2]string{m.ClientID, m.ClientHost}
			}
		}
	}
	return nil
}
