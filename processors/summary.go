package processors

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// summaryIndex is where the indexes of a cut's own messages begin: behind all that an event says.
const summaryIndex = 1 << 20

// summarize adds what a Cutter says once per row and cut. The source of such a message is the last event of its row, so
// that a replay finds it in that row's outbox; it goes out in that event's place, for receivers tell repeats by order.
func (p *part) summarize(c *cut) error {
	m, ok := p.machine.(Cutter)
	if !ok {
		return nil
	}
	some := false
	for _, e := range c.dirty {
		if e.Part || e.row == nil || e.Quarantined() {
			continue
		}
		msgs, err := guard(func() []codecs.Message { return m.Cut(e.row, nil) })
		if err != nil {
			return p.suspectFault(e.Applied, e.key, err)
		}
		for i := range msgs {
			o, err := p.encode(p.id, e.Applied, summaryIndex+int32(i), &msgs[i])
			if err != nil {
				return fmt.Errorf("%w: %w", errStep, err)
			}
			e.outbox = append(e.outbox, o)
			e.outBytes += o.size()
			c.send(o)
			some = true
		}
	}
	if some {
		slices.SortStableFunc(c.outputs, func(a, b *output) int {
			return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.index, b.index))
		})
	}
	return nil
}
