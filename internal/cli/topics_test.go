package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/topics"
)

func TestTopicsPlanApplyDiff(t *testing.T) {
	dir := isolate(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.yaml"), []byte(topologyFile), 0o600))
	b, err := broker.Start(broker.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	on := func(what string, more ...string) result {
		return run(t, "", append([]string{"topics", what, "--bootstrap-server", b.Bootstrap(), "--topology", "t.yaml", "--partitions", "2"}, more...)...)
	}

	r := on("diff")
	require.Equal(t, ExitError, r.code)
	require.Contains(t, r.err, "mismatches")

	r = on("plan", "--json")
	require.Equal(t, ExitOK, r.code, r.err)
	var plan topics.Plan
	require.NoError(t, json.Unmarshal([]byte(r.out), &plan))
	require.NotEmpty(t, plan.Missing)

	r = on("apply")
	require.Equal(t, ExitOK, r.code, r.err)
	require.Contains(t, r.out, "created quiesce.control with 2 partitions")
	require.Contains(t, r.out, "created a with 2 partitions")

	require.Equal(t, ExitOK, on("diff").code)
	require.Equal(t, ExitOK, on("apply").code, "a second time changes nothing")
	r = on("plan")
	require.Contains(t, r.out, "0 to create, 0 differences")

	r = run(t, "", "topics", "apply", "--bootstrap-server", b.Bootstrap(), "--partitions", "3")
	require.Equal(t, ExitError, r.code)
	require.Contains(t, r.err, "quiesce.control: partitions is 2, should be 3")
}

func TestTopicsPlanPrintsACLsWithoutABroker(t *testing.T) {
	isolate(t)
	r := run(t, "", "topics", "plan", "--acls", "--bootstrap-server", "127.0.0.1:1")
	require.Equal(t, ExitOK, r.code, r.err)
	require.Contains(t, r.out, "kafka-acls.sh --add --allow-principal User:controller")
	r = run(t, "", "topics", "plan", "--acls", "--json")
	for _, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

func TestTopicsWithoutABroker(t *testing.T) {
	isolate(t)
	r := run(t, "", "topics", "plan", "--bootstrap-server", "127.0.0.1:1", "--timeout", "300ms")
	require.Equal(t, ExitError, r.code)
	require.Contains(t, r.err, "127.0.0.1:1")
}
