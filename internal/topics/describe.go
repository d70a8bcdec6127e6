package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/quiesce/quiesce/topology"
)

// topic is what a broker knows of a topic that exists.
type topic struct {
	partitions int32
	leaders    int32 // partitions that have one
	replicas   int32 // the least of any partition
}

// describe asks a broker, not the client's cache, which of the topics exist.
func (m *Manager) describe(ctx context.Context, names ...string) (map[string]topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, m.cfg.Client)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	found := map[string]topic{}
	var errs []error
	for _, t := range resp.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
		case err != nil && !kerr.IsRetriable(err): // a new topic answers "leader not available" for a while
			errs = append(errs, fmt.Errorf("describe topic %s: %w", *t.Topic, err))
		default:
			found[*t.Topic] = summary(t)
		}
	}
	return found, errors.Join(errs...)
}

func summary(t kmsg.MetadataResponseTopic) topic {
	s := topic{partitions: int32(len(t.Partitions))}
	for i, p := range t.Partitions {
		if n := int32(len(p.Replicas)); i == 0 || n < s.replicas {
			s.replicas = n
		}
		if p.Leader >= 0 && p.ErrorCode != kerr.LeaderNotAvailable.Code {
			s.leaders++
		}
	}
	return s
}

// configs returns the settings of topics by name and key.
func (m *Manager) configs(ctx context.Context, names []string) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	if len(names) == 0 {
		return all, nil
	}
	resources, err := m.admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe topic settings: %w", err)
	}
	var errs []error
	for _, r := range resources {
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("describe settings of topic %s: %w", r.Name, r.Err))
			continue
		}
		all[r.Name] = map[string]string{}
		for _, c := range r.Configs {
			all[r.Name][c.Key] = c.MaybeValue()
		}
	}
	return all, errors.Join(errs...)
}

// Resolver returns the real partition counts, for topology.Resolve and Start. It asks a broker at each call.
func (m *Manager) Resolver(ctx context.Context) topology.Resolver {
	return func(name string) (int32, error) {
		found, err := m.describe(ctx, name)
		return found[name].partitions, err
	}
}

func specNames(specs []topology.Spec) []string {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	return names
}
