package conformance

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/deploytest"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/dispatcher"
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/processors/notify"
	scripts "github.com/quiesce/quiesce/testdata/conformance"
)

// deployment runs all roles that scripts are about. Its deliveries are made by nobody.
func deployment(t *testing.T) *deploytest.Deployment {
	d := deploytest.New(t)
	workflow, err := job.New(job.Config{})
	require.NoError(t, err)
	notifier, err := notify.New(notify.Config{})
	require.NoError(t, err)
	d.Run(batch.New(batch.Config{}), workflow, notifier)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- dispatcher.Run(ctx, dispatcher.Config{Bootstrap: strings.Join(d.Bootstrap, ","), Prefix: d.Prefix, Log: slog.New(slog.DiscardHandler),
			Options: []kgo.Opt{kgo.MetadataMinAge(50 * time.Millisecond), kgo.HeartbeatInterval(100 * time.Millisecond)}})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return d
}

// TestConformance runs every script against a deployment of this release.
func TestConformance(t *testing.T) {
	d := deployment(t)
	d.Settled()
	all, err := Load(scripts.FS)
	require.NoError(t, err)
	cfg := Config{Bootstrap: d.Bootstrap, Prefix: d.Prefix, Unique: "t", Patience: time.Minute, Queue: deploytest.Queue}
	joined(t, d)
	for _, s := range all {
		t.Run(s.ID, func(t *testing.T) {
			r, err := Run(t.Context(), cfg, s)
			require.NoError(t, err)
			require.Empty(t, r.Absent)
			require.Empty(t, r.Faults, "%s", s.Title)
			require.True(t, r.Passed)
		})
	}
}

// joined waits until the dispatcher is a member of its group.
func joined(t *testing.T, d *deploytest.Deployment) {
	adm := kadm.NewClient(d.Client)
	group := codecs.Group(d.Prefix, codecs.GroupDispatcher)
	require.Eventually(t, func() bool {
		groups, err := adm.DescribeGroups(t.Context(), group)
		return err == nil && len(groups[group].Members) > 0
	}, time.Minute, 20*time.Millisecond)
}
