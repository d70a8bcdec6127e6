package batch

import (
	"bytes"
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// seal takes a feeder's N. A second seal with other values is a contradiction.
func (s *step) seal(d *codecs.BatchSeal) {
	l := s.started(d.Run)
	if l == nil {
		return
	}
	if d.Feeder >= uint32(len(l.Feeders)) {
		s.reject(fmt.Sprintf("/feeder: %d, START has %d", d.Feeder, len(l.Feeders)))
		return
	}
	f := l.Feeders[d.Feeder]
	switch {
	case f.Sealed && f.Total == d.Total && bytes.Equal(f.PayloadDigest, d.PayloadDigest) && bytes.Equal(f.Fingerprint, d.Fingerprint):
		s.audit().Duplicates++
		return
	case l.open() == nil:
		s.audit().Late++
		return
	case f.Sealed:
		s.contradict(fmt.Sprintf("feeder %d sealed twice: %d tasks, then %d, or with another digest", d.Feeder, f.Total, d.Total))
		return
	}
	if reason := l.refuses(d); reason != "" {
		s.reject(reason)
		return
	}
	f.Sealed, f.Total, f.SealedAt = true, d.Total, s.off
	f.PayloadDigest, f.Fingerprint = bytes.Clone(d.PayloadDigest), bytes.Clone(d.Fingerprint)
	for _, c := range d.Chunks {
		l.Chunks = append(l.Chunks, clone(c))
	}
	s.take(l, nil)
	s.r.Version++
	if !l.sealed() {
		return
	}
	l.State, l.SealedAt, l.LastProgress = codecs.State_sealed, s.r.Now, s.r.Now
	s.event(codecs.TypeBatchSealed, "")
	if !s.m.off.sealDoesNotLook {
		s.evaluate()
	}
}

// refuses says why a feeder cannot have the tasks that it seals with.
func (l *life) refuses(d *codecs.BatchSeal) string {
	n := d.Total
	switch {
	case len(d.Chunks) > maxManifest:
		return fmt.Sprintf("/chunks: %d, at most %d", len(d.Chunks), maxManifest)
	case len(d.PayloadDigest) > maxDigest:
		return fmt.Sprintf("/payload_digest: %d bytes, at most %d", len(d.PayloadDigest), maxDigest)
	case n > l.maxIndex():
		return fmt.Sprintf("/total: %d, max_total is %d", n, l.maxIndex())
	case uint64(l.total())+uint64(n) > 1<<32-1:
		return "/total: the feeders' totals exceed 4294967295 tasks"
	}
	return ""
}

// started returns the run of an event that needs a START; otherwise it says why there is none.
func (s *step) started(run string) *life {
	l := s.r.life(run, s.off)
	switch {
	case l == nil && s.r.fresh(run), l != nil && l.Start == nil:
		s.reject(fmt.Sprintf("run %s has not started", run))
		return nil
	case l == nil:
		s.audit().Stale++
		return nil
	}
	return l
}
