package invoices

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Hook is a receiver of webhooks: it drops repeats by their id, and counts them.
type Hook struct {
	server   *http.Server
	listener net.Listener
	group    errgroup.Group

	mu   sync.Mutex
	told map[string]*Note
}

// Note is a notification that came.
type Note struct {
	Type    string // of the event: job.started, step.completed, ...
	Subject string // job
	Step    string
	Count   int // times that it came
}

// maxNote bounds the body of a webhook; more than that is no notification of ours.
const maxNote = 1 << 20

// StartHook listens on an address of this machine.
func StartHook(listen string) (*Hook, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("webhook receiver: %w", err)
	}
	h := &Hook{listener: l, told: map[string]*Note{}}
	h.server = &http.Server{Handler: http.HandlerFunc(h.receive), ReadHeaderTimeout: 10 * time.Second}
	h.group.Go(func() error { return h.server.Serve(l) })
	return h, nil
}

// URL is where it takes POSTs.
func (h *Hook) URL() string { return "http://" + h.listener.Addr().String() + "/" }

// Close ends it and every connection.
func (h *Hook) Close() error {
	err := h.server.Close()
	if end := h.group.Wait(); !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// Notes returns what came, by webhook-id.
func (h *Hook) Notes() map[string]Note {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[string]Note, len(h.told))
	for id, n := range h.told {
		all[id] = *n
	}
	return all
}

func (h *Hook) receive(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Type    string `json:"type"`
		Subject string `json:"subject"`
		Data    struct {
			Step string `json:"step"`
		} `json:"data"`
	}
	id := r.Header.Get("webhook-id")
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxNote)).Decode(&m); err != nil || id == "" {
		http.Error(w, "not a webhook", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if had := h.told[id]; had != nil {
		had.Count++
		return
	}
	h.told[id] = &Note{Type: m.Type, Subject: m.Subject, Step: m.Data.Step, Count: 1}
}
