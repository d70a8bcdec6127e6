package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// EventFilter of a stream; every field is optional.
type EventFilter struct {
	Types    []string // names or globs
	Subjects []string // batch or job ids
	After    string   // cursor of a stream before: resume there
	Start    bool     // without After: from the oldest event on, not from now
}

// Events is an open stream of events.
type Events struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	cursor string
}

// Events opens a stream; it stands when the call returns, so what happens after it will be seen. ctx ends it.
func (c *Client) Events(ctx context.Context, f EventFilter) (*Events, error) {
	q := url.Values{"type": f.Types, "subject": f.Subjects}
	if f.After != "" {
		q.Set("after", f.After)
	}
	if f.Start {
		q.Set("from", "start")
	}
	resp, err := c.send(ctx, http.MethodGet, "/v1/events", q, nil, nil) //nolint:bodyclose // Events.Close does
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	e := &Events{body: resp.Body, lines: bufio.NewReader(resp.Body), cursor: f.After}
	first, err := e.lines.ReadString('\n')
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("events: %w", c.unreachable(ctx, err))
	}
	if at, ok := strings.CutPrefix(strings.TrimSpace(first), ": "); ok && e.cursor == "" {
		e.cursor = at
	}
	return e, nil
}

// Close ends the stream.
func (e *Events) Close() error { return e.body.Close() }

// Cursor resumes after the last event that Next returned.
func (e *Events) Cursor() string { return e.cursor }

// errStream is what a sidecar says when its reading of the topic failed.
var errStream = errors.New("event stream failed")

// Next blocks until there is an event. io.EOF: the sidecar has ended the stream; open a new one at Cursor.
func (e *Events) Next() (*api.Event, error) {
	var id, name, data string
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			return nil, err
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data += value
		case field != "" || value != "" || data == "":
			// a comment, a field that is not used, or an empty line between two
		case name == "stream-error":
			return nil, fmt.Errorf("%w: %s", errStream, data)
		default:
			ev := &api.Event{}
			if err := json.Unmarshal([]byte(data), ev); err != nil {
				return nil, fmt.Errorf("event %s: %w", id, err)
			}
			e.cursor = id
			return ev, nil
		}
	}
}
