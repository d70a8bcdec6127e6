package batch

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/bits-and-blooms/bitset"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// AppendBinary writes the sets as roaring bitmaps: runs, arrays or dense, whichever is the smallest.
func (c *Chunk) AppendBinary(b []byte) ([]byte, error) {
	r := &codecs.ChunkRow{Format: rowFormat, Round: c.round, Legs: uint32(len(c.legs))}
	if c.limit < codecs.ChunkSize {
		r.Limit = &c.limit
	}
	var err error
	pack := func(s *bitset.BitSet) []byte {
		if err != nil || s.None() {
			return nil
		}
		m := roaring.FromDense(s.Words(), false)
		m.RunOptimize()
		var out bytes.Buffer
		out.Grow(int(m.GetSerializedSizeInBytes()))
		_, err = m.WriteTo(&out)
		return out.Bytes()
	}
	for _, l := range c.legs {
		lr := &codecs.LegRow{Done: pack(&l.done), Failed: pack(&l.by[codecs.Failed]), Skipped: pack(&l.by[codecs.Skipped]),
			Cancelled: pack(&l.by[codecs.Cancelled]), TimedOut: pack(&l.by[codecs.TimedOut]), Lost: pack(&l.by[codecs.Lost]),
			Unknown: pack(&l.by[codecs.Unknown])}
		lr.ProtoReflect().SetUnknown(l.unknown)
		r.Leg = append(r.Leg, lr)
	}
	r.Started = pack(&c.started)
	r.ProtoReflect().SetUnknown(c.unknown)
	if err != nil {
		return nil, fmt.Errorf("chunk %s: %w", codecs.KeyString(c.key), err)
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, r)
}

// loadChunk reads what AppendBinary wrote.
func loadChunk(key string, b []byte, off mutants) (*Chunk, error) {
	fail := func(err error) (*Chunk, error) {
		return nil, fmt.Errorf("chunk %s: %w", codecs.KeyString(key), err)
	}
	r := &codecs.ChunkRow{}
	if err := proto.Unmarshal(b, r); err != nil {
		return fail(err)
	}
	if r.Format > rowFormat {
		return fail(fmt.Errorf("%w: %d", codecs.ErrNewFormat, r.Format))
	}
	c := newChunk(key, off)
	c.round, c.unknown = r.Round, r.ProtoReflect().GetUnknown()
	if r.Limit != nil {
		c.limit = min(*r.Limit, codecs.ChunkSize)
	}
	if len(r.Leg) > codecs.MaxLegs {
		return fail(fmt.Errorf("%d legs", len(r.Leg)))
	}
	for _, lr := range r.Leg {
		l := &leg{unknown: lr.ProtoReflect().GetUnknown()}
		for o, packed := range map[codecs.Outcome_Code][]byte{codecs.OK: lr.Done, codecs.Failed: lr.Failed, codecs.Skipped: lr.Skipped,
			codecs.Cancelled: lr.Cancelled, codecs.TimedOut: lr.TimedOut, codecs.Lost: lr.Lost, codecs.Unknown: lr.Unknown} {
			s := &l.by[o]
			if o == codecs.OK {
				s = &l.done
			}
			if err := unpack(s, packed); err != nil {
				return fail(err)
			}
		}
		if !l.consistent() {
			return fail(errContradiction)
		}
		c.legs = append(c.legs, l)
	}
	if err := unpack(&c.started, r.Started); err != nil {
		return fail(err)
	}
	c.recount()
	return c, nil
}

var errContradiction = errors.New("sets of outcomes contradict each other")

// consistent says that every index has at most one outcome, and is done if it has one.
func (l *leg) consistent() bool {
	var seen bitset.BitSet
	for o := range l.by {
		s := &l.by[o]
		if s.None() {
			continue
		}
		if seen.IntersectionCardinality(s) > 0 || l.done.IntersectionCardinality(s) != s.Count() {
			return false
		}
		seen.InPlaceUnion(s)
	}
	return true
}

func unpack(s *bitset.BitSet, packed []byte) error {
	if len(packed) == 0 {
		return nil
	}
	m := roaring.New()
	if _, err := m.ReadFrom(bytes.NewReader(packed)); err != nil {
		return err
	}
	if err := m.Validate(); err != nil && !m.IsEmpty() {
		return err
	}
	if !m.IsEmpty() && m.Maximum() >= codecs.ChunkSize {
		return fmt.Errorf("index %d in a chunk of %d", m.Maximum(), codecs.ChunkSize)
	}
	*s = *bitset.From(m.ToDense())
	return nil
}

// String is one stable line.
func (c *Chunk) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chunk %s round=%d", codecs.KeyString(c.key), c.round)
	for o := codecs.OK; int(o) < outcomes; o++ {
		if c.n[o] > 0 {
			fmt.Fprintf(&b, " %s=%d", o, c.n[o])
		}
	}
	if c.running > 0 {
		fmt.Fprintf(&b, " running=%d", c.running)
	}
	if len(c.legs) > 1 {
		b.WriteString(" legs=")
		for i, l := range c.legs {
			if i > 0 {
				b.WriteByte('+')
			}
			fmt.Fprint(&b, l.done.Count())
		}
	}
	if c.limit < codecs.ChunkSize {
		fmt.Fprintf(&b, " limit=%d", c.limit)
	}
	return b.String()
}
