package sidecar

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/oklog/ulid/v2"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// startBatch writes batch.start. The same Idempotency-Key gives the same run, which the row starts once.
func (s *Server) startBatch(w http.ResponseWriter, r *http.Request) {
	started, err := s.start(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Location", "/v1/batches/"+started.Batch)
	writeJSON(w, http.StatusCreated, started)
}

func (s *Server) start(w http.ResponseWriter, r *http.Request) (*api.Started, error) {
	b, err := readBody(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	id, data, err := splitID(b, "batch")
	if err != nil {
		return nil, err
	}
	start := &codecs.BatchStart{}
	if err := decodeData(data, start); err != nil {
		return nil, err
	}
	if start.Run == "" {
		start.Run = runOf(id, key)
	}
	if err := codecs.ValidID("batch", id); err != nil {
		return nil, invalid(api.Field{Pointer: "/id", Reason: err.Error()})
	}
	ev := &codecs.Event{Type: codecs.TypeBatchStart, ID: id + "/" + start.Run + "/start", Key: id, Data: start,
		Traceparent: r.Header.Get("traceparent")}
	if err := validate(ev, ""); err != nil {
		return nil, err
	}
	if err := s.fillTopology(r.Context(), start); err != nil {
		return nil, err
	}
	pos, err := s.cfg.Log.Append(r.Context(), id, ev)
	if err != nil {
		return nil, brokerFault("start of batch "+id, err)
	}
	return &api.Started{Batch: id, Run: start.Run, Position: pos}, nil
}

// splitID takes the member id out of the body.
func splitID(b []byte, kind string) (id string, data []byte, err error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(b, &body); err != nil {
		return "", nil, invalid(api.Field{Reason: "the body is not a JSON object"})
	}
	raw, ok := body["id"]
	if !ok {
		return "", nil, invalid(api.Field{Pointer: "/id", Reason: "missing: the id of the " + kind})
	}
	if err := json.Unmarshal(raw, &id); err != nil {
		return "", nil, invalid(api.Field{Pointer: "/id", Reason: "not a string"})
	}
	delete(body, "id")
	data, err = json.Marshal(body)
	return id, data, err
}

// runOf makes a run id: a ULID, or a digest of the batch and the idempotency key.
func runOf(batch, key string) string {
	if key == "" {
		return ulid.Make().String()
	}
	sum := sha256.Sum256([]byte(batch + "\x00" + key))
	return "k" + hex.EncodeToString(sum[:12])
}

// idempotencyKey reads the header: the id of the command, and what makes two requests the same.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", badParameter("Idempotency-Key", "sent more than once")
	}
	if err := codecs.ValidID("command", values[0]); err != nil {
		return "", badParameter("Idempotency-Key", err.Error())
	}
	return values[0], nil
}
