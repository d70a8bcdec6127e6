package notify

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

const rowFormat = 1

// Row counts what the notifier did with one partition.
type Row struct {
	key string
	*codecs.NotifyRow
}

// NewRow makes the empty row of a partition.
func (*Machine) NewRow(key string) codecs.Row {
	return &Row{key, &codecs.NotifyRow{Format: rowFormat}}
}

// LoadRow reads what AppendBinary wrote.
func (*Machine) LoadRow(key string, b []byte) (codecs.Row, error) {
	r := &Row{key, &codecs.NotifyRow{}}
	if err := proto.Unmarshal(b, r.NotifyRow); err != nil {
		return nil, fmt.Errorf("notifier row %q: %w", key, err)
	}
	if r.Format > rowFormat {
		return nil, fmt.Errorf("notifier row %q: %w: %d", key, codecs.ErrNewFormat, r.Format)
	}
	return r, nil
}

// AppendBinary appends the protobuf of the row.
func (r *Row) AppendBinary(b []byte) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, r.NotifyRow)
}

// String is one stable line.
func (r *Row) String() string {
	return fmt.Sprintf("notifier p%s events=%d deliveries=%d cut=%d refused=%d", r.key, r.Events, r.Deliveries, r.Cut, r.Refused)
}
