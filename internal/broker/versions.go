package broker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// hidden are requests whose answers by kfake break a client, which does without them when they are not offered.
var hidden = []int16{
	// The eligible leader replicas of a partition are null; the Java admin client fails on that. It falls back to
	// Metadata.
	int16(kmsg.DescribeTopicPartitions),
}

// versions answers ApiVersions as kfake does, without the hidden requests. (kfake.MaxVersions would hide them, too, but
// also turns off a check that keeps two produce requests to a new partition in order.)
type versions struct{ offered *kmsg.ApiVersionsResponse }

// askVersions asks the broker at addr, before answer is in place, what it offers.
func askVersions(addr string) (*versions, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its versions: %w", addr, err)
	}
	resp.ApiKeys = slices.DeleteFunc(resp.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool {
		return slices.Contains(hidden, k.ApiKey)
	})
	return &versions{offered: resp}, nil
}

// answer is a control function of kfake.
func (v *versions) answer(cluster *kfake.Cluster) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		if kreq.GetVersion() > v.offered.Version {
			return nil, nil, false // kfake tells the client to ask again
		}
		cluster.KeepControl()
		resp := *v.offered
		resp.Version = kreq.GetVersion()
		return &resp, nil, true
	}
}
