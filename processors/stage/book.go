package stage

import (
	"context"
	"fmt"
	"sync"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/markers"
)

// Book keeps the account of one unit: what was handled since the last cut, and what is durable and may be committed.
// Records are entered in the order of the partition. Safe for concurrent use.
type Book struct {
	desk *Desk
	name *codecs.Unit

	mu      sync.Mutex
	machine *markers.Unit
	reports reports
	tally   Count // since the last cut
	from    int64 // position of the last cut
	durable *codecs.UnitState
}

func (d *Desk) newBook(p partition, machine *markers.Unit) *Book {
	b := &Book{desk: d, name: d.unitConfig(p).Unit, machine: machine, from: machine.Position()}
	d.mu.Lock()
	d.books[b] = true
	d.mu.Unlock()
	d.status.forget(b)
	return b
}

// begin makes the empty state the one to commit, so that where a unit began is known even if it never gets a record: a
// reset is told once this is committed (again, should the process end between the two), and what is deleted from here on
// before it was read is noticed.
func (b *Book) begin() {
	id := b.desk.facts.ids[b.name.Topic]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.durable = &codecs.UnitState{Position: b.machine.Position(), TopicId: id[:]}
}

// Close forgets the book.
func (b *Book) Close() {
	b.desk.mu.Lock()
	defer b.desk.mu.Unlock()
	delete(b.desk.books, b)
}

// Position is the offset of the next record.
func (b *Book) Position() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.machine.Position()
}

// Data enters a data record with its result. now says that the next cut should not wait.
func (b *Book) Data(rec *codecs.Record, tag *codecs.Tag, res *Result) (now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	res.count(&b.tally, tag.Batch != "")
	batch := markers.Batch{ID: tag.Batch, Run: tag.Run, Round: tag.Round}
	if res.cascade && b.wanted(batch) {
		b.machine.Data(rec.Offset, batch, tag.Plan, res.machine)
	} else {
		b.machine.Pass(rec.Offset)
	}
	return b.reports.add(tag, res.items, res.legs, b.desk.cfg.Flow.ReportCount)
}

// Control enters a record that carries no data: END, or what a later release may add.
func (b *Book) Control(rec *codecs.Record, tag *codecs.Tag) (now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := markers.Batch{ID: tag.Batch, Run: tag.Run, Round: tag.Round}
	if tag.Control != codecs.ControlEnd || !b.wanted(batch) {
		b.machine.Pass(rec.Offset)
		return false
	}
	b.tally.Markers++
	return b.machine.End(rec.Offset, batch, tag.Plan, tag.From)
}

// wanted says whether the machine should hear of a batch: not of one that is over and was dropped. mu is held, so that
// the news of an end comes before the question or drops what follows from the answer.
func (b *Book) wanted(batch markers.Batch) bool {
	return b.machine.Knows(batch) || !b.desk.status.over(batch.ID, batch.Run, batch.Round)
}

// Rejected enters a record that went to the dead letter and belongs to no batch.
func (b *Book) Rejected(rec *codecs.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tally.Untagged++
	b.tally.DeadLetter++
	b.machine.Pass(rec.Offset)
}

func (b *Book) drop(batch, run string, round uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machine.Drop(batch, run, round)
}

// Cut is a book at a position. Once the outputs of all records below it are acked, Settle makes it durable.
type Cut struct {
	cut     markers.Cut
	reports reports
	from    int64
}

// Position is the offset below which everything belongs to the cut or to an earlier one.
func (c *Cut) Position() int64 { return c.cut.Position }

// Cut takes what was entered since the last cut; nil if that is nothing.
func (b *Book) Cut() *Cut {
	b.mu.Lock()
	c := &Cut{cut: b.machine.Cut(), reports: b.reports, from: b.from}
	b.tally.Ended += uint64(len(c.cut.Ends))
	tally := b.tally
	b.reports, b.from, b.tally = reports{}, c.cut.Position, Count{}
	b.mu.Unlock()
	if c.cut.Position == c.from {
		return nil
	}
	b.desk.cfg.Counters.add(b.name, func(n *Count) { n.merge(tally) })
	return c
}

// Settle sends the cut's END markers, then its reports, each acked; then its position may be committed.
func (b *Book) Settle(c *Cut) error {
	if err := b.desk.sendMarkers(c.cut.Ends); err != nil {
		return err
	}
	if err := b.sendReports(c); err != nil {
		return err
	}
	id := b.desk.facts.ids[b.name.Topic]
	c.cut.State.TopicId = id[:]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.durable = c.cut.State
	return nil
}

// Durable is the state to commit and the metadata that carries it; nil if there is none that was not committed yet.
func (b *Book) Durable(ctx context.Context) (*codecs.UnitState, string, error) {
	b.mu.Lock()
	st := b.durable
	b.mu.Unlock()
	if st == nil {
		return nil, "", nil
	}
	text, err := b.desk.metadata(ctx, b.name, st)
	return st, text, err
}

// Metadata carries the book's state at its position as it stands.
func (b *Book) Metadata(ctx context.Context) (string, error) {
	id := b.desk.facts.ids[b.name.Topic]
	b.mu.Lock()
	st := b.machine.State()
	b.mu.Unlock()
	st.TopicId = id[:]
	return b.desk.metadata(ctx, b.name, st)
}

// Committed says that the state was committed.
func (b *Book) Committed(st *codecs.UnitState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.durable == st {
		b.durable = nil
	}
	b.desk.cfg.Counters.add(b.name, func(n *Count) { n.Committed = st.Position })
}

// Restore makes the books of partitions from what their last owners committed.
func (d *Desk) Restore(ctx context.Context, claims map[string][]int32) ([]*Book, error) {
	var want []partition
	for topic, ids := range claims {
		for _, id := range ids {
			want = append(want, partition{topic, id})
		}
	}
	restored, err := d.restore(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("stage %s: restore units: %w", d.cfg.Stage, err)
	}
	var books []*Book
	for _, b := range restored {
		books = append(books, b)
	}
	return books, nil
}

// Unit is the unit of the book.
func (b *Book) Unit() *codecs.Unit { return b.name }
