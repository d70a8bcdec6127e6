package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"github.com/quiesce/quiesce/codecs"
)

// SplitList makes a splitter of a function that returns all tasks at once.
func SplitList(list func(ctx context.Context, t *Task) ([]*codecs.ManifestTask, error)) Splitter {
	return func(ctx context.Context, t *Task, emit func(*codecs.ManifestTask) error) error {
		tasks, err := list(ctx, t)
		if err != nil {
			return err
		}
		for _, m := range tasks {
			if err := emit(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// SplitStream makes a splitter of a function that returns a stream of tasks; the stream's first error ends it.
func SplitStream(stream func(ctx context.Context, t *Task) iter.Seq2[*codecs.ManifestTask, error]) Splitter {
	return func(ctx context.Context, t *Task, emit func(*codecs.ManifestTask) error) error {
		for m, err := range stream(ctx, t) {
			if err != nil {
				return err
			}
			if err := emit(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// SplitLines makes a splitter of a source of JSON lines, for example a file: a line is the payload of one task, and its
// member "id", if it is an object that has one that is a string, the task's id. Blank lines are nothing.
func SplitLines(open func(ctx context.Context, t *Task) (io.ReadCloser, error)) Splitter {
	return func(ctx context.Context, t *Task, emit func(*codecs.ManifestTask) error) error {
		r, err := open(ctx, t)
		if err != nil {
			return err
		}
		defer r.Close()
		return lines(r, emit)
	}
}

// lines reads JSON lines.
func lines(r io.Reader, emit func(*codecs.ManifestTask) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), MaxTaskBytes)
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return Fail(fmt.Errorf("line %d is not JSON", n))
		}
		var named struct {
			ID any `json:"id"`
		}
		m := &codecs.ManifestTask{Payload: &codecs.Payload{Data: bytes.Clone(line), ContentType: codecs.ContentJSON}}
		if line[0] == '{' && json.Unmarshal(line, &named) == nil {
			m.Id, _ = named.ID.(string)
		}
		if err := emit(m); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read lines: %w", err)
	}
	return nil
}
