package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quiesce/quiesce/processors/stage"
)

// services are the handlers of the plain consumer groups.
type services struct {
	root string       // folder that paths are relative to
	last atomic.Int64 // when the last task of any of them ended, ns since the epoch
}

// handler returns the handler of a stage; nil if it is none of these.
func (s *services) handler(name string) stage.Handler {
	h, ok := map[string]stage.Handler{StageRead: s.read, StageParse: s.parse, StageDigest: s.digest}[name]
	if !ok {
		return nil
	}
	return func(ctx context.Context, r *stage.Record) ([]stage.Output, error) {
		defer s.touch()
		return h(ctx, r)
	}
}

// touch notes that a task has ended now.
func (s *services) touch() { s.last.Store(time.Now().UnixNano()) }

// read gets a file's path and sends on what the file is.
func (s *services) read(_ context.Context, r *stage.Record) ([]stage.Output, error) {
	var f File
	if err := json.Unmarshal(r.Value, &f); err != nil {
		return nil, stage.NoRetry(fmt.Errorf("path record: %w", err))
	}
	f, err := readFile(s.root, f.Path)
	if err != nil {
		return nil, stage.NoRetry(err)
	}
	return send(topicFiles, f.Path, f)
}

// parse gets a file and sends on what is declared in it.
func (s *services) parse(_ context.Context, r *stage.Record) ([]stage.Output, error) {
	var f File
	if err := json.Unmarshal(r.Value, &f); err != nil {
		return nil, stage.NoRetry(fmt.Errorf("file record: %w", err))
	}
	d, err := parseFile(s.root, f.Path)
	if err != nil {
		return nil, stage.NoRetry(err)
	}
	return send(topicDecls, pathKey(d.Path), d)
}

// digest gets a file and sends its path to whoever collects that digest.
func (s *services) digest(_ context.Context, r *stage.Record) ([]stage.Output, error) {
	var f File
	if err := json.Unmarshal(r.Value, &f); err != nil {
		return nil, stage.NoRetry(fmt.Errorf("file record: %w", err))
	}
	return send(topicDigests, digestKey(f.Digest), f)
}

func send(topic, key string, v any) ([]stage.Output, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("record for %s: %w", topic, err)
	}
	return []stage.Output{{Topic: topic, Key: []byte(key), Value: b}}, nil
}
