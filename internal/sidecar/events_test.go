package sidecar_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// sse reads a stream of server-sent events.
type sse struct {
	t       *testing.T
	scanner *bufio.Scanner
	comment []string
}

type sseEvent struct {
	id, name string
	api.Event
}

func (b *bundle) stream(query string, header ...string) *sse {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, "GET", b.srv.URL+"/v1/events"+query, nil)
	require.NoError(b.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.srv.Client().Do(req)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { cancel(); resp.Body.Close() })
	require.Equal(b.t, 200, resp.StatusCode)
	require.Equal(b.t, "text/event-stream", resp.Header.Get("Content-Type"))
	s := &sse{t: b.t, scanner: bufio.NewScanner(resp.Body)}
	s.until(func() bool { return len(s.comment) > 0 }) // the first comment: the stream stands
	return s
}

func (s *sse) until(done func() bool) (e sseEvent) {
	s.t.Helper()
	for !done() {
		require.True(s.t, s.scanner.Scan(), "stream ended: %v", s.scanner.Err())
		name, value, _ := strings.Cut(s.scanner.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			require.NoError(s.t, json.Unmarshal([]byte(value), &e.Event))
		case "":
			if value != "" {
				s.comment = append(s.comment, value)
			}
		}
		if s.scanner.Text() == "" && e.name != "" {
			return e
		}
	}
	return e
}

func (s *sse) next() sseEvent { s.t.Helper(); return s.until(func() bool { return false }) }

func TestEventsResumeWithoutGapOrRepeat(t *testing.T) {
	b := setup(t)
	live := b.stream("")
	for _, id := range []string{"b-1", "b-2", "b-3"} {
		b.start(id, "")
		b.post("/v1/batches/"+id+":seal", `{"total":0}`).ok(202, nil)
	}
	var ids, seen []string
	for range 6 {
		e := live.next()
		require.Equal(t, e.name, e.Type)
		ids = append(ids, e.id)
		seen = append(seen, e.ID)
	}
	again := b.stream("", "Last-Event-ID", ids[2])
	var rest []string
	for range 3 {
		rest = append(rest, again.next().ID)
	}
	require.ElementsMatch(t, seen[3:], rest)
	require.NotEmpty(t, b.stream("?after="+ids[4]).next().ID)
	require.Equal(t, seen[0], b.stream("?from=start&subject=b-1").next().ID)
}

func TestEventsFilters(t *testing.T) {
	b := setup(t)
	s := b.stream("?type=batch.c*&subject=b-2&subject=b-3")
	for _, id := range []string{"b-1", "b-2", "b-3"} {
		b.start(id, "")
	}
	b.post("/v1/batches/b-1:cancel", "").ok(202, nil)
	b.post("/v1/batches/b-3:cancel", "").ok(202, nil)
	e := s.next()
	require.Equal(t, "b-3 batch.cancelled", e.Subject+" "+e.Type)
	b.get("/v1/events?type=[").names("type")
	b.get("/v1/events?from=middle").names("from")
	b.get("/v1/events", "Last-Event-ID", "0:1,0:2").names("Last-Event-ID")
}

func TestEventsHeartbeatAndLimit(t *testing.T) {
	b := setup(t, func(c *sidecar.Config) { c.Heartbeat, c.MaxStreams = time.Millisecond, 1 })
	s := b.stream("")
	s.until(func() bool { return len(s.comment) > 2 })
	require.Equal(t, "heartbeat", s.comment[1])
	b.get("/v1/events").problem(503, api.ProblemBusy)
}

func TestEventsWithoutTopic(t *testing.T) {
	b := setup(t, func(c *sidecar.Config) { c.Events = nil })
	b.get("/v1/events").problem(501, api.ProblemUnavailable)
}
