package replay

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/quiesce/quiesce/codecs"
)

// envelope is what stands beside a machine's row in a table record.
type envelope struct {
	applied     int64
	part        bool
	quarantined bool // is or was, as far as the record tells
}

func parseEnvelope(v []byte) (envelope, []byte, error) {
	h, row, tail, err := codecs.ParseRow(v)
	e := envelope{applied: h.Applied}
	if err != nil || len(tail) == 0 {
		return e, row, err
	}
	e.part = tail[0]&1 != 0
	_, n := binary.Uvarint(tail[1:])
	if n <= 0 {
		return e, row, codecs.ErrNotARow
	}
	spans, k := binary.Uvarint(tail[1+n:])
	if k <= 0 {
		return e, row, codecs.ErrNotARow
	}
	e.quarantined = spans > 0
	return e, row, nil
}

// judge finds the records of a changelog that stand behind a newer claim than their own.
type judge struct{ claim uint64 }

func (j *judge) stale(rec *codecs.Record) (bool, error) {
	switch string(rec.Key) {
	case codecs.ClaimKey:
		j.claim = max(j.claim, uint64(rec.Offset))
		return false, nil
	case codecs.AdoptKey:
		return false, nil
	}
	var claim uint64
	if rec.Value == nil {
		v, _ := rec.Header("quiesce-claim")
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil {
			return true, nil
		}
		claim = n
	} else {
		h, err := codecs.ParseRowHeader(rec.Value)
		if errors.Is(err, codecs.ErrNewFormat) {
			return false, err
		}
		if err != nil {
			return true, nil
		}
		claim = h.Claim
	}
	if claim < j.claim {
		return true, nil
	}
	j.claim = max(j.claim, claim)
	return false, nil
}
