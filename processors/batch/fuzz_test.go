package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// seedRows are rows of a batch with something of everything.
func seedRows(f *testing.F) (header []byte, chunks [][]byte) {
	e := newEnv(f, mutants{})
	e.start(&codecs.BatchStart{Queue: "q", Window: 3, Policy: &codecs.Policy{Kind: "tolerate", Tolerate: "5"}, Deadlines: &codecs.Deadlines{CompleteWithin: 1000}})
	e.round(1, 65_530, 65_545, codecs.OK)
	e.seal(65_540)
	for i, o := range []codecs.Outcome_Code{codecs.Failed, codecs.Lost, codecs.Skipped, codecs.Outcome_unspecified} {
		e.round(1, uint32(i), uint32(i), o)
	}
	e.step(codecs.TypeBatchReport, reportOf("next", 0, 1, codecs.NewItem(3, 4, codecs.OK)))
	e.command("1", "cancel", nil)
	e.command("2", "redrive", nil)
	for key, s := range e.rows {
		if key != e.batch {
			chunks = append(chunks, s.bytes)
		}
	}
	return e.rows[e.batch].bytes, chunks
}

// FuzzLoadRow: bytes of a header are refused, or give a row that is the same after it was written and read, and that
// events do not break.
func FuzzLoadRow(f *testing.F) {
	header, _ := seedRows(f)
	f.Add(header)
	f.Add([]byte{})
	m := New(Config{})
	f.Fuzz(func(t *testing.T, b []byte) {
		glanced(t, m, b)
		row, err := m.LoadRow("b", b)
		if err != nil {
			return
		}
		line := row.String()
		again, err := row.AppendBinary(nil)
		require.NoError(t, err)
		row, err = m.LoadRow("b", again)
		require.NoError(t, err)
		require.Equal(t, line, row.String())
		third, err := row.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, again, third)
		m.Deadline(row)
		m.Collect(row)
		m.Status(row, false)
		row.(*Row).Snapshot()
		row.(*Row).MissingUnits()
	})
}

// FuzzLoadPart: the same of a chunk.
func FuzzLoadPart(f *testing.F) {
	_, chunks := seedRows(f)
	for _, c := range chunks {
		f.Add(c)
	}
	f.Add([]byte{})
	m := New(Config{})
	key := codecs.ChunkKey("b", "r", 0)
	f.Fuzz(func(t *testing.T, b []byte) {
		part, err := m.LoadPart(key, b)
		if err != nil {
			return
		}
		line := part.String()
		again, err := part.AppendBinary(nil)
		require.NoError(t, err)
		part, err = m.LoadPart(key, again)
		require.NoError(t, err)
		require.Equal(t, line, part.String())
		third, err := part.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, again, third)
		m.StepPart(part, 1, &codecs.Event{Data: reportOf("r", 0, 2, codecs.NewItem(0, 65_535, codecs.OK))})
		c := part.(*Chunk)
		sum := uint32(0)
		for _, n := range c.n {
			sum += n
		}
		require.LessOrEqual(t, sum, uint32(codecs.ChunkSize))
	})
}
