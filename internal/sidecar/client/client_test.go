package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
)

func setup(t *testing.T, edit ...func(*sidecar.Config)) (context.Context, *client.Client, *sidecartest.Deployment) {
	t.Helper()
	d := sidecartest.New()
	cfg := sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d, Events: d}}
	for _, e := range edit {
		e(&cfg)
	}
	s, err := sidecar.New(cfg)
	require.NoError(t, err)
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	c, err := client.New(client.Config{Address: srv.URL, Token: cfg.Token})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx, c, d
}

var none client.WriteOptions

func TestReadYourWrites(t *testing.T) {
	ctx, c, d := setup(t)
	d.Hold()
	_, err := c.Start(ctx, "b-1", &codecs.BatchStart{Labels: map[string]string{"a": "b"}}, none)
	require.NoError(t, err)
	got := make(chan *api.Batch)
	go func() {
		b, err := c.Get(ctx, "b-1")
		if err != nil {
			t.Error(err)
		}
		got <- b
	}()
	select {
	case <-got:
		require.Fail(t, "read before the write was durable")
	case <-time.After(20 * time.Millisecond):
	}
	d.Release()
	b := <-got
	require.Equal(t, "open", b.State)
	require.Equal(t, map[string]string{"a": "b"}, b.Labels)
}

func TestWaitThroughToTheEnd(t *testing.T) {
	ctx, c, _ := setup(t)
	_, err := c.Start(ctx, "b-1", nil, none)
	require.NoError(t, err)
	ended := make(chan *api.Batch)
	go func() {
		b, err := c.Wait(ctx, "b-1", nil)
		if err != nil {
			t.Error(err)
		}
		ended <- b
	}()
	_, err = c.Seal(ctx, "b-1", &codecs.BatchSeal{Total: 2}, none)
	require.NoError(t, err)
	last := uint32(1)
	_, err = c.Report(ctx, "b-1", &codecs.BatchReport{Items: []*codecs.ReportItem{{Last: &last, Outcome: codecs.OK}}}, none)
	require.NoError(t, err)
	require.Equal(t, "completed", (<-ended).State)
	var tasks []uint32
	for x, err := range c.Tasks(ctx, "b-1", "ok") {
		require.NoError(t, err)
		tasks = append(tasks, x.Index)
	}
	require.Equal(t, []uint32{0, 1}, tasks)
}

func TestWaitEndsWithTheContext(t *testing.T) {
	ctx, c, _ := setup(t)
	_, err := c.Start(ctx, "b-1", nil, none)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = c.Wait(short, "b-1", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, client.ExitTimeout, client.ExitCode(err))
}

func TestErrorsSayWhatTheyMean(t *testing.T) {
	ctx, c, d := setup(t, func(cfg *sidecar.Config) { cfg.AtLeastTimeout = 50 * time.Millisecond })
	_, err := c.Start(ctx, "b-1", nil, none)
	require.NoError(t, err)

	_, err = c.Get(ctx, "none")
	require.ErrorIs(t, err, client.ErrNotFound)
	require.Equal(t, client.ExitError, client.ExitCode(err))
	_, err = c.Start(ctx, "a b", nil, none)
	require.ErrorIs(t, err, client.ErrInvalid)
	require.Equal(t, client.ExitUsage, client.ExitCode(err))
	var p *api.Problem
	require.True(t, errors.As(err, &p))
	require.Equal(t, "/id", p.Errors[0].Pointer)
	require.Contains(t, err.Error(), "/id")
	_, err = c.Command(ctx, "b-1", "redrive", nil, none)
	require.ErrorIs(t, err, client.ErrWrongState)
	_, err = c.Command(ctx, "b-1", "pause", nil, client.WriteOptions{Version: 77})
	require.ErrorIs(t, err, client.ErrStaleVersion)
	d.Hold()
	c.Saw("b-1", api.Position{Partition: 0, Offset: 99})
	_, err = c.Get(ctx, "b-1")
	require.ErrorIs(t, err, client.ErrNotYet)
	d.Recover(sidecar.Readiness{Percent: 3})
	require.ErrorIs(t, c.Ready(ctx), client.ErrRecovering)

	gone, err := client.New(client.Config{Address: "127.0.0.1:1"})
	require.NoError(t, err)
	require.ErrorIs(t, gone.Ready(ctx), client.ErrUnreachable)
	_, err = client.New(client.Config{Address: "ftp://x"})
	require.Error(t, err)

	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	c, err = client.New(client.Config{Address: other.URL})
	require.NoError(t, err)
	require.ErrorContains(t, c.Ready(ctx), "not from a sidecar")
}

func TestToken(t *testing.T) {
	ctx, c, _ := setup(t, func(cfg *sidecar.Config) { cfg.Token = "t" })
	_, err := c.Start(ctx, "b-1", nil, none)
	require.NoError(t, err)
}

func TestCommandsAreAnsweredOnce(t *testing.T) {
	ctx, c, d := setup(t)
	_, err := c.Start(ctx, "b-1", nil, none)
	require.NoError(t, err)
	o := client.WriteOptions{IdempotencyKey: "k"}
	for range 2 {
		_, err = c.Command(ctx, "b-1", "extend", &codecs.CommandArgs{Deadlines: &codecs.Deadlines{CompleteBy: 1 << 40}}, o)
		require.NoError(t, err)
	}
	a, err := c.Answer(ctx, "b-1", "k")
	require.NoError(t, err)
	require.True(t, a.Applied)
	require.Equal(t, int64(1<<40), d.Records("b-1")[1].Data.(*codecs.BatchCommand).Args.Deadlines.CompleteBy)
}

func TestListWalksAllPages(t *testing.T) {
	ctx, c, d := setup(t)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		d.Put(api.Batch{Batch: id, State: "open"})
	}
	var ids []string
	for b, err := range c.List(ctx, client.Filter{States: []string{"active"}, Limit: 2}) {
		require.NoError(t, err)
		ids = append(ids, b.Batch)
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, ids)
	for _, err := range c.List(ctx, client.Filter{States: []string{"nonsense"}}) {
		require.ErrorIs(t, err, client.ErrInvalid)
	}
}

func TestMissingAndExplain(t *testing.T) {
	ctx, c, _ := setup(t)
	_, err := c.Start(ctx, "b-1", nil, none)
	require.NoError(t, err)
	_, err = c.Seal(ctx, "b-1", &codecs.BatchSeal{Total: 3}, none)
	require.NoError(t, err)
	for m, err := range c.Missing(ctx, "b-1") {
		require.NoError(t, err)
		require.Equal(t, []api.Range{{First: 0, Last: 2}}, m.Ranges)
	}
	x, err := c.Explain(ctx, "b-1")
	require.NoError(t, err)
	require.Equal(t, "3 tasks have no outcome: 0-2", x.Lines[0])
	list, err := c.Topologies(ctx)
	require.NoError(t, err)
	require.Empty(t, list.Topologies)
}

func TestEventsResumeAtTheCursor(t *testing.T) {
	ctx, c, _ := setup(t)
	s, err := c.Events(ctx, client.EventFilter{Types: []string{"batch.*"}})
	require.NoError(t, err)
	_, err = c.Start(ctx, "b-1", nil, none)
	require.NoError(t, err)
	_, err = c.Start(ctx, "b-2", nil, none)
	require.NoError(t, err)
	first, err := s.Next()
	require.NoError(t, err)
	at := s.Cursor()
	second, err := s.Next()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, "batch.started", first.Type)
	again, err := c.Events(ctx, client.EventFilter{After: at})
	require.NoError(t, err)
	defer again.Close()
	e, err := again.Next()
	require.NoError(t, err)
	require.Equal(t, second.ID, e.ID)
}
