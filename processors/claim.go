package processors

import (
	"errors"
	"strconv"

	"github.com/quiesce/quiesce/codecs"
)

// HeaderClaim is on null records of a table and of a compacted output: the claim of the owner that wrote it, decimal.
// Other records have it in their value (codecs.RowHeader).
const HeaderClaim = "quiesce-claim"

// Judge follows one partition of a table, or of a compacted output of its owner, from any offset on and says which
// records are stale: they stand behind a newer claim than their own. Everybody who reads such a log (recovery, owner,
// view) asks a Judge and ignores what is stale; among the others the later record wins.
type Judge struct {
	// Claim is the newest claim seen. A reader that keeps its offset keeps this too.
	Claim uint64
}

// Stale takes the next record of the partition. Foreign records (without a row header) are stale; so are null records
// without HeaderClaim. An error wraps codecs.ErrNewFormat: a newer release wrote it, the reader must not go on.
func (j *Judge) Stale(rec *codecs.Record) (bool, error) {
	switch string(rec.Key) {
	case codecs.ClaimKey:
		j.see(claimNumber(rec))
		return false, nil
	case codecs.AdoptKey:
		return false, nil // written by an operator, who holds no claim
	}
	claim, err := claimOf(rec)
	switch {
	case errors.Is(err, codecs.ErrNewFormat):
		return false, err
	case err != nil || claim < j.Claim:
		return true, nil
	}
	j.see(claim)
	return false, nil
}

func (j *Judge) see(claim uint64) { j.Claim = max(j.Claim, claim) }

// claimOf returns the claim that a record was written under.
func claimOf(rec *codecs.Record) (uint64, error) {
	if rec.Value == nil {
		v, _ := rec.Header(HeaderClaim)
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil {
			return 0, codecs.ErrNotARow
		}
		return n, nil
	}
	h, err := codecs.ParseRowHeader(rec.Value)
	return h.Claim, err
}

// claimNumber is the number of a claim record: its offset in the changelog. Copies of it in compacted outputs carry the
// number, the original cannot.
func claimNumber(rec *codecs.Record) uint64 {
	if h, err := codecs.ParseRowHeader(rec.Value); err == nil && h.Claim > 0 {
		return h.Claim
	}
	return uint64(rec.Offset)
}

// claimRecord is the value of a claim record. number = 0 in the changelog, where the offset is the number.
func claimRecord(number uint64, owner string) []byte {
	return codecs.AppendRow(nil, codecs.RowHeader{Format: codecs.RowFormat, Claim: number, Applied: -1}, []byte(owner), nil)
}

func claimHeader(claim uint64) []codecs.Header {
	return []codecs.Header{{Key: HeaderClaim, Value: strconv.AppendUint(nil, claim, 10)}}
}

// restamp returns the record value under another claim.
func restamp(v []byte, claim uint64) []byte {
	h, row, tail, err := codecs.ParseRow(v)
	if err != nil {
		return nil
	}
	h.Claim = claim
	return codecs.AppendRow(make([]byte, 0, len(v)), h, row, tail)
}
