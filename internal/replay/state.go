package replay

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// State is what a fold gives.
type State struct {
	Records  int64 // read
	Messages int64 // that the machine would have sent
	Repeats  int64 // dropped: a machine's output that was there before
	Moved    int64 // on a wrong partition, left to their moved copies
	Dead     int64 // that went to the dead letter

	rows map[string]*Row
	gone map[string]*Row // given up by the machine, as they were
}

// Row is one row, header or part.
type Row struct {
	Key         string
	Partition   int32
	Applied     int64 // offset of the last record in it
	Part        bool
	Quarantined string // reason, "" = it is not
	Row         codecs.Row

	wasQuarantined bool
	revived        bool // made anew after it was given up
}

// String is one stable line: key, the row, quarantine.
func (r *Row) String() string {
	s := codecs.KeyString(r.Key) + "  " + r.Row.String()
	if r.Quarantined != "" {
		s += "  QUARANTINED: " + r.Quarantined
	}
	return s
}

func newState() *State { return &State{rows: map[string]*Row{}, gone: map[string]*Row{}} }

// row returns the row of a key, a new one when there is none.
func (s *State) row(key string, partition int32, make func(string) codecs.Row) *Row {
	r, ok := s.rows[key]
	if !ok {
		_, revived := s.gone[key]
		r = &Row{Key: key, Partition: partition, Applied: -1, Row: make(key), revived: revived}
		s.rows[key] = r
	}
	return r
}

func (s *State) drop(key string) {
	if r, ok := s.rows[key]; ok {
		s.gone[key] = r
		delete(s.rows, key)
	}
}

// Rows returns the rows in order of their keys.
func (s *State) Rows() []*Row {
	rows := make([]*Row, 0, len(s.rows))
	for _, key := range slices.Sorted(maps.Keys(s.rows)) {
		rows = append(rows, s.rows[key])
	}
	return rows
}

// Print writes the rows, one line each, in order of their keys.
func (s *State) Print(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, r := range s.Rows() {
		if _, err := fmt.Fprintln(out, r); err != nil {
			return fmt.Errorf("print rows: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print rows: %w", err)
	}
	return nil
}

// Summary is one line of counts.
func (s *State) Summary() string {
	return fmt.Sprintf("records=%d messages=%d rows=%d repeats=%d moved=%d dead=%d",
		s.Records, s.Messages, len(s.rows), s.Repeats, s.Moved, s.Dead)
}
