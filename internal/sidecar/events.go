package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

const (
	feedWait     = 500 * time.Millisecond // longest time that an idle fetch stays at the broker
	writeTimeout = 10 * time.Second       // for one write to a reader that does not read
)

// events streams the deployment's events. Each has the id to resume after it; Last-Event-ID, or the parameter of that
// name (after), resumes there. Filters: type (a name or a glob) and subject, both repeatable.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	q.only("type", "subject", "after", "from")
	from, start := q.resume(r.Header.Get("Last-Event-ID"))
	want := wanted{types: q.values["type"], subjects: q.values["subject"]}
	if err := want.check(); err != nil {
		q.bad("type", err.Error())
	}
	if err := q.err(); err != nil {
		s.fail(w, r, err)
		return
	}
	if s.cfg.Events == nil {
		s.fail(w, r, &api.Problem{Type: api.ProblemUnavailable, Title: "No event topic is configured", Status: 501})
		return
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.fail(w, r, &api.Problem{Type: api.ProblemBusy, Title: "Too many event streams", Status: 503})
		return
	}
	stream, err := s.cfg.Events.Open(r.Context(), from, start)
	if err != nil {
		s.fail(w, r, brokerFault("events", err))
		return
	}
	defer stream.Close()
	s.pump(w, r, stream, want)
}

// resume reads where a stream starts.
func (q *query) resume(last string) (Cursor, bool) {
	if last == "" {
		last = q.values.Get("after")
	}
	c, err := ParseCursor(last)
	if err != nil {
		q.bad("Last-Event-ID", err.Error())
	}
	switch q.values.Get("from") {
	case "", "end":
		return c, false
	case "start":
		return c, true
	}
	q.bad("from", "start or end")
	return c, false
}

// wanted is the filter of a stream; an empty list wants everything.
type wanted struct{ types, subjects []string }

func (f wanted) check() error {
	for _, t := range f.types {
		if _, err := path.Match(t, ""); err != nil {
			return err
		}
	}
	return nil
}

func (f wanted) match(e *api.Event) bool {
	if len(f.subjects) > 0 && !slices.Contains(f.subjects, e.Subject) {
		return false
	}
	for _, t := range f.types {
		if ok, _ := path.Match(t, e.Type); ok {
			return true
		}
	}
	return len(f.types) == 0
}

// pump copies events to the client until it goes, the feed fails, or the server stops. Silence is filled with comments.
func (s *Server) pump(w http.ResponseWriter, r *http.Request, stream Stream, want wanted) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := sseWriter{w: w, rc: http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out.comment(stream.Cursor().String())

	read := make(chan batchOfEvents)
	done := make(chan struct{})
	go func() {
		defer close(done)
		readAll(ctx, stream, read)
	}()
	defer func() { cancel(); <-done }()

	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for out.err == nil {
		select {
		case got := <-read:
			if got.err != nil {
				out.failed(got.err)
				return
			}
			out.events(got, want)
		case <-beat.C:
			out.comment("heartbeat")
		case <-s.closing:
			return
		case <-ctx.Done():
			return
		}
	}
}

// batchOfEvents is one answer of a feed with the cursors that stand after each event.
type batchOfEvents struct {
	events []api.Event
	ids    []string
	err    error
}

// readAll sends what the stream gives until ctx ends or it fails.
func readAll(ctx context.Context, stream Stream, to chan<- batchOfEvents) {
	for {
		at := stream.Cursor()
		events, err := stream.Next(ctx)
		got := batchOfEvents{events: events, err: err}
		for _, e := range events {
			at[e.Partition] = int64(e.Offset) + 1
			got.ids = append(got.ids, at.String())
		}
		select {
		case to <- got:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// sseWriter writes server-sent events; after an error it does nothing more.
type sseWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf bytes.Buffer
	err error
}

func (o *sseWriter) comment(text string) {
	o.buf.WriteString(": " + text + "\n\n")
	o.flush()
}

func (o *sseWriter) events(got batchOfEvents, want wanted) {
	for i := range got.events {
		if want.match(&got.events[i]) {
			o.event(got.ids[i], got.events[i].Type, got.events[i])
		}
	}
	if o.buf.Len() > 0 {
		o.flush()
	}
}

func (o *sseWriter) event(id, name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		return
	}
	if id != "" {
		o.buf.WriteString("id: " + id + "\n")
	}
	o.buf.WriteString("event: " + name + "\ndata: ")
	o.buf.Write(b)
	o.buf.WriteString("\n\n")
}

// failed tells the client why the stream ends; it resumes with its last id.
func (o *sseWriter) failed(err error) {
	o.event("", "stream-error", &api.Problem{Type: api.ProblemBroker, Title: "Kafka did not answer", Status: 502, Detail: err.Error()})
	o.flush()
}

func (o *sseWriter) flush() {
	if o.err == nil {
		_ = o.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, o.err = o.w.Write(o.buf.Bytes())
		if o.err == nil {
			o.err = o.rc.Flush()
		}
	}
	o.buf.Reset()
}
