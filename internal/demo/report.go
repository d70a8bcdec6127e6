package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/quiesce/quiesce/processors/stage"
)

// report folds what parse and digest send.
type report struct {
	mu   sync.Mutex
	rows map[string]*Entry
}

func (r *report) handle(_ context.Context, rec *stage.Record) ([]stage.Output, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := row(r.rows, string(rec.Key))
	switch rec.Topic {
	case topicDecls:
		var d Decls
		if err := json.Unmarshal(rec.Value, &d); err != nil {
			return nil, stage.NoRetry(fmt.Errorf("declarations record: %w", err))
		}
		e.Decls = &d
	case topicDigests:
		var f File
		if err := json.Unmarshal(rec.Value, &f); err != nil {
			return nil, stage.NoRetry(fmt.Errorf("digest record: %w", err))
		}
		e.AddPath(f.Path)
	}
	return nil, nil
}

func (r *report) read() map[string]*Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.rows)
}
