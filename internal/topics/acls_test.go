package topics

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/quiesce/quiesce/topology"
)

const password = "secret"

// guarded starts a broker that lets each role do what its ACLs say, and nothing else.
func guarded(t *testing.T, roles []Access) *kfake.Cluster {
	t.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", password)}
	for _, a := range roles {
		var acls []kfake.ACL
		for _, acl := range a.ACLs() {
			resource := map[string]kmsg.ACLResourceType{"topic": kmsg.ACLResourceTypeTopic, "group": kmsg.ACLResourceTypeGroup}
			for _, name := range acl.Operations {
				op, err := kmsg.ParseACLOperation(name)
				require.NoError(t, err)
				acls = append(acls, kfake.ACL{Resource: resource[acl.Resource], Name: acl.Name,
					Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
			}
		}
		opts = append(opts, kfake.User("PLAIN", principal(a.Role), password, acls...))
	}
	c, err := kfake.NewCluster(opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func as(t *testing.T, c *kfake.Cluster, role string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append(opts, kgo.SeedBrokers(c.ListenAddrs()...), kgo.SASL(plain.Auth{User: principal(role), Pass: password}.AsMechanism()))
	cl, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

func sample(t *testing.T, name string) *topology.Topology {
	t.Helper()
	b, err := os.ReadFile("../../testdata/topologies/" + name + ".yaml")
	require.NoError(t, err)
	x, err := topology.Load(b, "")
	require.NoError(t, err)
	return x
}

// TestACLsAreEnoughAndNoMore: under its own ACLs every role reads, writes, verifies and joins its group; a write to any
// other topic of the deployment is refused.
func TestACLsAreEnoughAndNoMore(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x := sample(t, "sink")
	s := topology.Settings{Partitions: 1, Queues: []topology.Queue{{Name: "render", Partitions: 1, Retries: []time.Duration{time.Second}}}}
	roles := Roles(s, x)
	c := guarded(t, roles)
	users, err := topology.Specs(x)
	require.NoError(t, err)
	specs := append(s.System(), users...)

	m, err := New(Config{Client: as(t, c, "operator")})
	require.NoError(t, err)
	_, err = m.Apply(ctx, specs)
	require.NoError(t, err, "the operator creates everything")

	for topic, err := range produceAll(ctx, as(t, c, "admin"), specs) {
		require.NoError(t, err, topic)
	}

	for _, a := range roles {
		t.Run(a.Role, func(t *testing.T) {
			cl := as(t, c, a.Role)
			m, err := New(Config{Client: cl})
			require.NoError(t, err)
			writes := produceAll(ctx, cl, specs)
			for _, spec := range specs {
				if slices.Contains(a.Write, spec.Name) {
					require.NoError(t, writes[spec.Name], spec.Name)
				} else {
					// A client that may write nothing at all does not even get a producer id.
					require.True(t, errors.Is(writes[spec.Name], kerr.TopicAuthorizationFailed) ||
						len(a.Write) == 0 && errors.Is(writes[spec.Name], kerr.ClusterAuthorizationFailed), spec.Name)
				}
				if slices.Contains(a.Read, spec.Name) || slices.Contains(a.Write, spec.Name) {
					require.NoError(t, m.Verify(ctx, []topology.Spec{spec}), spec.Name)
				}
			}
			for _, group := range a.Groups {
				joins(ctx, t, as(t, c, a.Role, kgo.ConsumerGroup(group), kgo.ConsumeTopics(a.Read...),
					kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())))
			}
			for _, group := range a.Watch {
				_, err := m.admin.FetchOffsets(ctx, group)
				require.NoError(t, err, group)
			}
		})
	}
}

// produceAll sends one record to each topic and returns what became of it.
func produceAll(ctx context.Context, cl *kgo.Client, specs []topology.Spec) map[string]error {
	var records []*kgo.Record
	for _, s := range specs {
		records = append(records, &kgo.Record{Topic: s.Name, Key: []byte("k"), Value: []byte("v")})
	}
	errs := map[string]error{}
	for _, r := range cl.ProduceSync(ctx, records...) {
		errs[r.Record.Topic] = r.Err
	}
	return errs
}

// joins polls once as a member of the group, without error.
func joins(ctx context.Context, t *testing.T, cl *kgo.Client) {
	t.Helper()
	fetches := cl.PollFetches(ctx)
	require.NoError(t, fetches.Err())
	require.NotZero(t, fetches.NumRecords())
	require.NoError(t, cl.CommitUncommittedOffsets(ctx))
}

func TestACLTextGolden(t *testing.T) {
	got := ACLText(Roles(topology.Settings{Prefix: "q"}, sample(t, "sink"), sample(t, "ledger")))
	if os.Getenv("REWRITE") != "" {
		require.NoError(t, os.WriteFile("testdata/acls.txt", []byte(got), 0o644))
	}
	want, err := os.ReadFile("testdata/acls.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), got, "REWRITE=1 go test writes it anew")
}
