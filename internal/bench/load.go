package bench

import (
	"fmt"
	"math/rand/v2"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// window within which near-sequential ids are shuffled.
const window = 10_000

// load makes the control records of a scenario, in the order in which they are produced.
type load struct {
	cfg   Config
	rng   *rand.Rand
	emit  func(key string, ev *codecs.Event) error
	count int // records emitted
}

func (l *load) size(batch int) int {
	n := l.cfg.N / l.cfg.Batches
	if batch < l.cfg.N%l.cfg.Batches {
		n++
	}
	return n
}

func batchID(i int) string { return fmt.Sprintf("bench-%d", i) }

// run emits START and seal of each batch when its turn comes, and the reports of the open ones in turn.
func (l *load) run() error {
	type open struct {
		batch int
		ids   *ids
	}
	var active []open
	next := 0
	for next < l.cfg.Batches || len(active) > 0 {
		for next < l.cfg.Batches && len(active) < l.cfg.Active {
			if err := l.begin(next); err != nil {
				return err
			}
			active = append(active, open{next, newIDs(l.size(next), l.cfg.Order, l.rng)})
			next++
		}
		keep := active[:0]
		for _, o := range active {
			chunk := o.ids.take(l.cfg.K)
			if err := l.report(o.batch, chunk); err != nil {
				return err
			}
			if !o.ids.empty() {
				keep = append(keep, o)
			}
		}
		active = keep
	}
	return nil
}

func (l *load) begin(batch int) error {
	id := batchID(batch)
	n := uint32(l.size(batch))
	if err := l.send(id, codecs.TypeBatchStart, &codecs.BatchStart{Run: "r", MaxTotal: max(n, 10_000_000)}); err != nil {
		return err
	}
	return l.send(id, codecs.TypeBatchSeal, &codecs.BatchSeal{Run: "r", Total: n})
}

func (l *load) report(batch int, chunk []uint32) error {
	item := &codecs.ReportItem{Outcome: codecs.OK}
	switch {
	case len(chunk) == 1:
		item.First = chunk[0]
	default:
		b, err := roaring.BitmapOf(chunk...).ToBytes()
		if err != nil {
			return fmt.Errorf("report of %s: %w", batchID(batch), err)
		}
		item.Bitmap = b
	}
	return l.send(batchID(batch), codecs.TypeBatchReport, &codecs.BatchReport{Run: "r", Items: []*codecs.ReportItem{item}})
}

func (l *load) send(key, typ string, data proto.Message) error {
	l.count++
	return l.emit(key, &codecs.Event{Type: typ, ID: fmt.Sprintf("%s/%d", key, l.count), Data: data})
}

// ids are the task indexes of a batch in their order of arrival, made a window at a time.
type ids struct {
	n, next int // indexes and the first one that is not in a window yet
	window  int
	buf     []uint32
	rng     *rand.Rand
}

func newIDs(n int, order string, rng *rand.Rand) *ids {
	s := &ids{n: n, window: window, rng: rng}
	if order == Random {
		s.window = n
	}
	return s
}

func (s *ids) empty() bool { return len(s.buf) == 0 && s.next == s.n }

// take returns up to k indexes; they are valid until the next call.
func (s *ids) take(k int) []uint32 {
	if len(s.buf) == 0 {
		w := min(s.window, s.n-s.next)
		s.buf = make([]uint32, w)
		for i := range s.buf {
			s.buf[i] = uint32(s.next + i)
		}
		s.next += w
		s.rng.Shuffle(w, func(i, j int) { s.buf[i], s.buf[j] = s.buf[j], s.buf[i] })
	}
	k = min(k, len(s.buf))
	out := s.buf[:k]
	s.buf = s.buf[k:]
	return out
}
