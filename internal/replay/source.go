package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/quiesce/quiesce/codecs"
)

// Source is a topic to read, recorded or live.
type Source interface {
	// Topic says which.
	Topic() codecs.RecordedTopic
	// Each calls fn with every record, in offset order within a partition, and stops at the first error. It gives the
	// same records at every call. The record is fn's to keep.
	Each(ctx context.Context, fn func(*codecs.Record) error) error
}

// File is a recording on disk.
type File struct {
	path string
	head codecs.RecordedTopic
}

var _ Source = (*File)(nil)

// OpenFile reads the first line of a recording.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	r, closer, err := f.open()
	if err != nil {
		return nil, err
	}
	f.head = r.Topic()
	return f, closer.Close()
}

func (f *File) open() (*codecs.RecordReader, io.Closer, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, nil, fmt.Errorf("open recording: %w", err)
	}
	r, err := codecs.NewRecordReader(file)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", f.path, err), file.Close())
	}
	return r, file, nil
}

// Topic is what the first line says.
func (f *File) Topic() codecs.RecordedTopic { return f.head }

// Each reads the file from its start.
func (f *File) Each(ctx context.Context, fn func(*codecs.Record) error) error {
	r, closer, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }() // opened for reading only
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if err := fn(rec); err != nil {
			return fmt.Errorf("%s: line %d: %w", f.path, r.Line(), err)
		}
	}
}
