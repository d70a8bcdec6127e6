package processors

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// far are rows that a take-over found settled and whose deadline is far ahead, by the hour of it. There may be millions:
// they are kept packed, and what became of a row meanwhile is looked up when its hour is near. Guarded by part.mu.
type far struct {
	byHour map[int64][]byte // uvarint length and bytes of each key
	first  int64            // hour of the earliest; only valid while there are some
}

const (
	hourMs    = int64(time.Hour / time.Millisecond)
	ripeBurst = 1000 // rows that are looked up at once
)

// add keeps the row for later; false = its deadline is too near for that.
func (f *far) add(key string, deadline int64, now time.Time) bool {
	hour := deadline / hourMs
	if ripeAt(hour).Sub(now) <= 0 {
		return false
	}
	if len(f.byHour) == 0 {
		f.byHour, f.first = map[int64][]byte{}, hour
	}
	f.first = min(f.first, hour)
	f.byHour[hour] = appendBytes(f.byHour[hour], key)
	return true
}

// ripeAt is when the rows of an hour become timers: an hour before.
func ripeAt(hour int64) time.Time { return time.UnixMilli((hour - 1) * hourMs) }

// until is how long until some rows become timers.
func (f *far) until(now time.Time) time.Duration {
	if len(f.byHour) == 0 {
		return time.Hour
	}
	return max(ripeAt(f.first).Sub(now), 0)
}

// ripe takes up to a burst of keys whose hour is near.
func (f *far) ripe(now time.Time) (keys []string) {
	if f.until(now) > 0 {
		return nil
	}
	b := f.byHour[f.first]
	for len(b) > 0 && len(keys) < ripeBurst {
		n, k := binary.Uvarint(b)
		end := k + int(n)
		keys = append(keys, string(b[k:end]))
		b = b[end:]
	}
	if f.byHour[f.first] = b; len(b) > 0 {
		return keys
	}
	delete(f.byHour, f.first)
	f.first = math.MaxInt64
	for hour := range f.byHour {
		f.first = min(f.first, hour)
	}
	return keys
}

// ripen makes timers of rows whose deadline is near, if they still have one.
func (p *part) ripen(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range p.timers.far.ripe(now) {
		if p.timers.byKey[key] != nil {
			continue
		}
		e := p.cache.rows[key]
		if e == nil {
			var err error
			if e, err = p.read(key, false); err != nil {
				return fmt.Errorf("deadline of %q: %w", key, err)
			}
		}
		if e.row != nil {
			p.timers.set(key, p.machine.Deadline(e.row))
		}
	}
	return nil
}
