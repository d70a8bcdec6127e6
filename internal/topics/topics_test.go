package topics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/topology"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// bundle is a manager on a broker, and a prefix of the test's own.
type bundle struct {
	*Manager
	ctx       context.Context
	bootstrap string
	prefix    string
}

var deployments atomic.Int64

func setup(t *testing.T) *bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	b := &bundle{ctx: ctx, bootstrap: brokertest.Bootstrap(t),
		prefix: fmt.Sprintf("d%d-%d", os.Getpid(), deployments.Add(1))}
	b.Manager = manager(t, b.bootstrap)
	t.Cleanup(b.cleanup(t))
	return b
}

func manager(t *testing.T, bootstrap string) *Manager {
	t.Helper()
	m, err := New(Config{Client: brokertest.Client(t, bootstrap), Poll: 10 * time.Millisecond})
	require.NoError(t, err)
	return m
}

// cleanup removes the deployment's topics, so that a real broker does not fill up.
func (b *bundle) cleanup(t *testing.T) func() {
	return func() {
		topics, err := b.admin.ListTopics(context.Background())
		require.NoError(t, err)
		var mine []string
		for name := range topics {
			if strings.HasPrefix(name, b.prefix) {
				mine = append(mine, name)
			}
		}
		if len(mine) > 0 {
			_, err = b.admin.DeleteTopics(context.Background(), mine...)
			require.NoError(t, err)
		}
	}
}

// small returns a deployment of few partitions.
func (b *bundle) small() []topology.Spec {
	return topology.Settings{Prefix: b.prefix, Partitions: 2, Queues: []topology.Queue{{Name: "render", Partitions: 3,
		Retries: []time.Duration{time.Second}}}}.System()
}

func (b *bundle) alter(t *testing.T, topic, key, value string) {
	t.Helper()
	rs, err := b.admin.AlterTopicConfigs(b.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic)
	require.NoError(t, err)
	require.NoError(t, rs[0].Err)
	client := b.cfg.Client
	require.NoError(t, client.Ping(b.ctx))
	for _, broker := range client.DiscoveredBrokers() { // each learns of it by itself
		require.Eventually(t, func() bool { return b.knows(broker, topic, key, value) }, time.Minute, 10*time.Millisecond)
	}
}

func (b *bundle) knows(broker *kgo.Broker, topic, key, value string) bool {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{key}
	req.Resources = append(req.Resources, r)
	resp, err := broker.Request(b.ctx, req)
	if err != nil {
		return false
	}
	for _, c := range resp.(*kmsg.DescribeConfigsResponse).Resources[0].Configs {
		if c.Name == key && c.Value != nil && *c.Value == value {
			return true
		}
	}
	return false
}

func TestApplyCreatesAllAndIsIdempotent(t *testing.T) {
	b := setup(t)
	specs := b.small()
	var mismatch *MismatchError
	require.ErrorAs(t, b.Verify(b.ctx, specs), &mismatch)
	require.Len(t, mismatch.Missing, len(specs))

	plan, err := b.Apply(b.ctx, specs)
	require.NoError(t, err)
	require.Len(t, plan.Missing, len(specs))

	plan, err = b.Plan(b.ctx, specs)
	require.NoError(t, err)
	require.Equal(t, Plan{Same: len(specs)}, plan)
	require.NoError(t, b.Verify(b.ctx, specs))

	// Usable at once: every partition takes and gives a record.
	c := brokertest.Client(t, b.bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequestRetries(0))
	for _, s := range specs {
		for p := range s.Partitions {
			require.NoError(t, c.ProduceSync(b.ctx, &kgo.Record{Topic: s.Name, Partition: p, Key: []byte("k"),
				Value: []byte("v")}).FirstErr(), "%s/%d", s.Name, p)
		}
	}
}

// TestFiveInstancesAtOnce: whoever loses the race for a topic goes on.
func TestFiveInstancesAtOnce(t *testing.T) {
	b := setup(t)
	specs := b.small()
	var all errgroup.Group
	gate := make(chan struct{})
	for range 5 {
		m := manager(t, b.bootstrap)
		all.Go(func() error {
			<-gate
			_, err := m.Apply(b.ctx, specs)
			return err
		})
	}
	close(gate)
	require.NoError(t, all.Wait())
	require.NoError(t, b.Verify(b.ctx, specs))
}

func TestApplyNeverAlters(t *testing.T) {
	b := setup(t)
	specs := b.small()
	_, err := b.Apply(b.ctx, specs[2:])
	require.NoError(t, err)
	status := specs[2].Name
	b.alter(t, status, topology.CleanupPolicy, "delete")

	plan, err := b.Apply(b.ctx, specs)
	var mismatch *MismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Len(t, plan.Missing, 2, "what is missing is created all the same")
	require.Empty(t, mismatch.Missing)
	require.Equal(t, "1 mismatches between topics and deployment:\n  "+status+
		": cleanup.policy is delete, should be compact (records would be kept or lost against the rules)", err.Error())
	have, err := b.configs(b.ctx, []string{status})
	require.NoError(t, err)
	require.Equal(t, "delete", have[status][topology.CleanupPolicy], "not altered")
}

// TestVerifyNamesAllMismatches: one error, everything that breaks a guarantee, nothing that does not.
func TestVerifyNamesAllMismatches(t *testing.T) {
	b := setup(t)
	specs := b.small()
	wrong := b.small()
	wrong[0].Partitions = 3 // control
	wrong = append(wrong[:5], wrong[6:]...)
	_, err := b.Apply(b.ctx, wrong)
	require.NoError(t, err)
	name := func(s string) string { return b.prefix + "." + s }
	b.alter(t, name("controller-table"), topology.MinCompactionLagMs, "300000")
	b.alter(t, name("controller-table"), topology.MaxMessageBytes, "1000000")
	b.alter(t, name("status"), topology.TimestampType, "CreateTime")
	b.alter(t, name("jobs"), topology.RetentionMs, "3600000")
	b.alter(t, name("events"), topology.RetentionMs, "-1")          // longer is fine
	b.alter(t, name("dispatch"), topology.RetentionMs, "691200000") // eight days is fine too
	b.alter(t, name("outcomes"), topology.SegmentMs, "60000")       // harmless
	b.alter(t, name("workflow-table"), topology.UncleanElection, "true")

	err = b.Verify(b.ctx, specs)
	require.EqualError(t, err, strings.ReplaceAll(`7 mismatches between topics and deployment:
  P.reports-tx: does not exist
  P.control: partitions is 3, should be 2 (keys would be looked for on another partition)
  P.controller-table: max.message.bytes is 1000000, should be 4194304 (large records would be refused)
  P.controller-table: min.compaction.lag.ms is 300000, should be 600000 (a stale row may hide a good one for good)
  P.status: message.timestamp.type is CreateTime, should be LogAppendTime (deadlines are judged by append times)
  P.jobs: retention.ms is 3600000, should be 1209600000 (records could be deleted unread)
  P.workflow-table: unclean.leader.election.enable is true, should be false (acknowledged records could be lost)`,
		"P.", b.prefix+"."))

	plan, err := b.Plan(b.ctx, specs)
	require.NoError(t, err)
	require.Len(t, plan.Differences, 9)
	text := plan.Text()
	require.Contains(t, text, "+ "+name("reports-tx")+": 2 partitions, delete\n")
	require.Contains(t, text, "~ "+name("outcomes")+": segment.ms is 60000, should be 3600000\n")
	require.Contains(t, text, "    kafka-configs.sh --alter --entity-type topics --entity-name "+name("jobs")+
		" --add-config retention.ms=1209600000\n")
	require.Contains(t, text, "1 to create, 6 to change by hand, 3 harmless differences,")
}

func TestUserTopics(t *testing.T) {
	b := setup(t)
	x := &topology.Topology{Name: "x", Version: 1, Source: b.prefix + ".in",
		Topics: map[string]topology.Topic{b.prefix + ".in": {}, b.prefix + ".mid": {Partitions: 3}},
		Stages: map[string]topology.Stage{
			"a": {In: []string{b.prefix + ".in"}, Out: []string{b.prefix + ".mid"}, Group: b.prefix + ".a"},
			"t": {In: []string{b.prefix + ".in"}, Group: b.prefix + ".t", Client: topology.ClientGoka, Table: true},
			"b": {In: []string{b.prefix + ".mid"}, Group: b.prefix + ".b"},
		}}
	specs, err := topology.Specs(x)
	require.NoError(t, err)
	_, err = b.Apply(b.ctx, specs)
	require.ErrorContains(t, err, b.prefix+".in: exists is false, should be true (no partition count is declared, so it must exist)")
	_, err = x.Start(topology.ModeMarkers, b.Resolver(b.ctx))
	require.ErrorContains(t, err, b.prefix+".in: has no declared partitions, so it must exist, and it does not")

	_, err = b.admin.CreateTopic(b.ctx, 5, -1, nil, b.prefix+".in")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := b.Apply(b.ctx, specs)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	counts, err := x.Resolve(b.Resolver(b.ctx))
	require.NoError(t, err)
	require.Equal(t, topology.Partitions{b.prefix + ".in": 5, b.prefix + ".mid": 3}, counts)
	table, err := b.describe(b.ctx, b.prefix+".t-table")
	require.NoError(t, err)
	require.EqualValues(t, 5, table[b.prefix+".t-table"].partitions, "as many as the table's input")

	b.alter(t, b.prefix+".in", topology.CleanupPolicy, "compact")
	require.ErrorContains(t, b.Verify(b.ctx, specs), b.prefix+".in: cleanup.policy is compact, should be delete")
}

// TestDeadLetterAcceptsTheLargestSource: what a user's topic takes, the dead letter takes, with headers and reason.
func TestDeadLetterAcceptsTheLargestSource(t *testing.T) {
	b := setup(t)
	big, dead := b.prefix+".big", b.prefix+".dead-letter"
	specs := append(b.small(), topology.Spec{Name: big, Partitions: 1, Replication: -1,
		Configs: map[string]string{topology.MaxMessageBytes: "10000000"}})
	_, err := b.Apply(b.ctx, specs[len(specs)-1:])
	require.NoError(t, err)
	_, err = b.Apply(b.ctx, specs)
	require.NoError(t, err)
	have, err := b.configs(b.ctx, []string{dead})
	require.NoError(t, err)
	require.Equal(t, "10065536", have[dead][topology.MaxMessageBytes], "created for what is there")

	b.alter(t, big, topology.MaxMessageBytes, "20000000")
	specs[len(specs)-1].Configs[topology.MaxMessageBytes] = "20000000"
	require.EqualError(t, b.Verify(b.ctx, specs), "1 mismatches between topics and deployment:\n  "+dead+
		": max.message.bytes is 10065536, should be 20065536 (large records would be refused)")
}

func TestCreationErrorsNameTheTopics(t *testing.T) {
	b := setup(t)
	specs := []topology.Spec{
		{Name: b.prefix + ".a", Partitions: 1, Replication: 100},
		{Name: b.prefix + ".b", Partitions: 1, Replication: -1},
		{Name: b.prefix + ".c", Partitions: 1, Replication: 100},
	}
	_, err := b.Apply(b.ctx, specs)
	require.ErrorContains(t, err, "create topic "+b.prefix+".a: INVALID_REPLICATION_FACTOR")
	require.ErrorContains(t, err, "create topic "+b.prefix+".c: INVALID_REPLICATION_FACTOR")
	require.NotContains(t, err.Error(), b.prefix+".b")
}

func TestNoBroker(t *testing.T) {
	c, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), kgo.RequestRetries(0))
	require.NoError(t, err)
	defer c.Close()
	m, err := New(Config{Client: c})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = m.Apply(ctx, topology.System("q", 1))
	require.ErrorContains(t, err, "describe topics: ")
	var mismatch *MismatchError
	require.False(t, errors.As(err, &mismatch))
}

func TestConfigValidate(t *testing.T) {
	_, err := New(Config{})
	require.EqualError(t, err, "topics: a client is required")
}
