package sidecar

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// verbSpec is one command and the states in which it makes sense.
type verbSpec struct {
	name  string
	state func(b *api.Batch) string // "" = allowed, else the reason
}

// verbs lists all of them; the routes and the OpenAPI document follow it.
var verbs = []verbSpec{
	{name: "seal"},
	{name: "cancel", state: notEnded},
	{name: "pause", state: notEnded},
	{name: "resume", state: notEnded},
	{name: "extend", state: notEnded},
	{name: "policy", state: notEnded},
	{name: "redrive", state: func(b *api.Batch) string {
		if !b.Terminal {
			return "the batch has not ended"
		}
		if b.State == "collected" || b.State == "inconsistent" {
			return "the run is " + b.State
		}
		return ""
	}},
	{name: "reevaluate", state: func(b *api.Batch) string {
		if b.State == "collected" {
			return "the run is collected"
		}
		return ""
	}},
	{name: "gc", state: func(b *api.Batch) string {
		if !b.Terminal {
			return "the batch has not ended"
		}
		return ""
	}},
	{name: verbRepair, state: func(b *api.Batch) string {
		if !b.Quarantined {
			return "the batch is not quarantined, and no record of it waits in the dead letter"
		}
		return ""
	}},
}

func notEnded(b *api.Batch) string {
	if b.Terminal {
		return "the batch is " + b.State
	}
	return ""
}

// verb answers one command. The record is written once per request; the row acts once per command id.
func (s *Server) verb(v verbSpec) http.HandlerFunc {
	handle := s.command
	if v.name == "seal" {
		handle = s.seal
	}
	return func(w http.ResponseWriter, r *http.Request) {
		accepted, err := handle(w, r, v)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		writeJSON(w, http.StatusAccepted, accepted)
	}
}

func (s *Server) command(w http.ResponseWriter, r *http.Request, v verbSpec) (*api.Accepted, error) {
	args := &codecs.CommandArgs{}
	id, key, expect, err := s.readCommand(w, r, args)
	if err != nil {
		return nil, err
	}
	ev := &codecs.Event{Type: codecs.TypeBatchCommand, ID: id + "/" + key, Key: id,
		Data: &codecs.BatchCommand{Id: key, Verb: v.name, Args: args, Expect: expect}}
	if err := validate(ev, "/args"); err != nil {
		return nil, err
	}
	t := s.batchOf(r)
	err = s.judge(r.Context(), t, func(b *api.Batch) error {
		switch {
		case s.answered(id, key):
			return nil // a repeat: the row knows it
		case expect != 0 && expect != uint64(b.Version):
			return staleVersion("batch", b.Version)
		case v.state == nil || v.state(b) == "":
			return nil
		}
		return s.refusal(r.Context(), t, v.name, v.state(b))
	})
	if err != nil {
		return nil, err
	}
	accepted, err := s.accept(r, id, key, ev)
	if err == nil && v.name == verbRepair {
		accepted.Repaired, err = s.sendBack(r.Context(), t, accepted.Position)
	}
	return accepted, err
}

func (s *Server) seal(w http.ResponseWriter, r *http.Request, _ verbSpec) (*api.Accepted, error) {
	seal := &codecs.BatchSeal{}
	id, key, expect, err := s.readCommand(w, r, seal)
	if err != nil {
		return nil, err
	}
	err = s.judge(r.Context(), s.batchOf(r), func(b *api.Batch) error {
		if seal.Run == "" {
			seal.Run = b.Run
		}
		switch {
		case expect != 0 && expect != uint64(b.Version):
			return staleVersion("batch", b.Version)
		case sealed(b, seal) || !b.Terminal || seal.Run != b.Run:
			return nil // open, a repeat, or the row's business
		}
		return wrongState("seal: the batch is " + b.State)
	})
	if err != nil {
		return nil, err
	}
	ev := &codecs.Event{Type: codecs.TypeBatchSeal, ID: id + "/" + key, Key: id, Data: seal}
	if err := validate(ev, ""); err != nil {
		return nil, err
	}
	return s.accept(r, id, key, ev)
}

// sealed says whether the same seal is in the row already.
func sealed(b *api.Batch, seal *codecs.BatchSeal) bool {
	for _, f := range b.Feeders {
		if f.Feeder == seal.Feeder && f.Sealed && f.Total == seal.Total {
			return true
		}
	}
	return false
}

// readCommand reads what every command has: the batch, the id of the command, the expected version, the body.
func (s *Server) readCommand(w http.ResponseWriter, r *http.Request, m proto.Message) (id, key string, expect uint64, err error) {
	b, err := readBody(w, r, maxBody)
	if err != nil {
		return "", "", 0, err
	}
	if key, err = idempotencyKey(r); err != nil {
		return "", "", 0, err
	}
	if key == "" {
		key = ulid.Make().String()
	}
	if expect, err = ifMatch(r); err != nil {
		return "", "", 0, err
	}
	return chi.URLParam(r, "id"), key, expect, decodeData(b, m)
}

// answered says whether the row has an answer to the command.
func (s *Server) answered(id, command string) bool {
	_, err := s.cfg.Batches.Command(id, command)
	return err == nil
}

func (s *Server) accept(r *http.Request, id, key string, ev *codecs.Event) (*api.Accepted, error) {
	ev.Traceparent = r.Header.Get("traceparent")
	pos, err := s.cfg.Log.Append(r.Context(), id, ev)
	if err != nil {
		return nil, brokerFault(ev.Type+" of batch "+id, err)
	}
	return &api.Accepted{Command: key, Position: pos}, nil
}

// ifMatch reads the expected version: a number, quoted or not; * and absent mean any.
func ifMatch(r *http.Request) (uint64, error) {
	text := r.Header.Get("If-Match")
	if text == "" || text == "*" {
		return 0, nil
	}
	n, err := strconv.ParseUint(strings.Trim(text, `"`), 10, 63)
	if err != nil || n == 0 {
		return 0, badParameter("If-Match", "not the version of a row")
	}
	return n, nil
}

func staleVersion(what string, has api.Int64) error {
	return &api.Problem{Type: api.ProblemStale, Title: "Stale version", Status: 412,
		Detail: "the " + what + " has version " + strconv.FormatInt(int64(has), 10)}
}
