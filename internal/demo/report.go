package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/stage"
)

// The report is a goka processor group: its table has one Entry per path and per digest, read through a view.

// fold puts what parse and digest send into the row of the record's key. Folding a record again changes nothing.
func fold(ctx processors.Context, value any) {
	e, _ := ctx.Value().(*Entry)
	if e == nil {
		e = &Entry{}
	}
	b, _ := value.([]byte)
	switch topic := string(ctx.Topic()); topic {
	case topicDecls:
		var d Decls
		if err := json.Unmarshal(b, &d); err != nil {
			ctx.Fail(stage.NoRetry(fmt.Errorf("declarations record: %w", err)))
		}
		e.Decls = &d
	case topicDigests:
		var f File
		if err := json.Unmarshal(b, &f); err != nil {
			ctx.Fail(stage.NoRetry(fmt.Errorf("digest record: %w", err)))
		}
		e.AddPath(f.Path)
	}
	ctx.SetValue(e)
}

// entryCodec writes rows as JSON.
type entryCodec struct{}

func (entryCodec) Encode(v any) ([]byte, error) { return json.Marshal(v) }

func (entryCodec) Decode(b []byte) (any, error) {
	e := &Entry{}
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("report row: %w", err)
	}
	return e, nil
}

// reportGroup says how the report runs.
func reportGroup(cfg stage.Config, dataDir, instanceID string) processors.StageGroupConfig {
	return processors.StageGroupConfig{Stage: cfg, Callback: fold, Table: entryCodec{}, DataDir: dataDir, InstanceID: instanceID}
}

// runReport runs the report until ctx ends.
func runReport(ctx context.Context, cfg processors.StageGroupConfig) error {
	g, err := processors.NewStageGroup(cfg)
	if err != nil {
		return err
	}
	return g.Run(ctx)
}

// readReport reads the table as it is now.
func readReport(ctx context.Context, cfg processors.StageGroupConfig) (map[string]*Entry, error) {
	v, err := processors.NewStageView(ctx, cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return v.Run(ctx) })
	rows := map[string]*Entry{}
	for err == nil && !v.Recovered() {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	if err == nil {
		err = v.Each(func(key string, value any) error {
			rows[key] = value.(*Entry)
			return nil
		})
	}
	stop()
	if end := group.Wait(); err == nil {
		err = end
	}
	return rows, err
}
