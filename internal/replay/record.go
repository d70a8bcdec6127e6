package replay

import (
	"context"
	"fmt"
	"io"

	"github.com/quiesce/quiesce/codecs"
)

// Record writes a source to w as a recording and returns the number of records. Two recordings of a topic that did not
// change are equal. progress, if not nil, is called after each record.
func Record(ctx context.Context, from Source, w io.Writer, progress func(records int64)) (int64, error) {
	out, err := codecs.NewRecordWriter(w, from.Topic())
	if err != nil {
		return 0, err
	}
	n := int64(0)
	err = from.Each(ctx, func(rec *codecs.Record) error {
		if err := out.Write(rec); err != nil {
			return err
		}
		if n++; progress != nil {
			progress(n)
		}
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("record: %w", err)
	}
	if err := out.Flush(); err != nil {
		return n, fmt.Errorf("record: %w", err)
	}
	return n, nil
}
