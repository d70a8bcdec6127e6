package processors

import (
	"fmt"
	"slices"
	"time"
)

// PartitionStatus is what an owner knows of one partition.
type PartitionStatus struct {
	Partition int32
	Claim     uint64    // number of this ownership
	Next      int64     // input offset that is expected next
	Done      int64     // below it rows and outputs are durable
	Written   int64     // position row; -1 = none yet
	Cached    int       // decoded rows
	Timers    int       // rows with a deadline
	Lag       int64     // input records that are not durable yet, as far as the last fetch told
	Moved     time.Time // when Done last changed, or the partition was taken over
	Err       error     // why it does not run
}

// Ready returns nil when this instance is a member of the group and every partition that it owns runs; else the reason.
func (p *Processor) Ready() error {
	p.mu.Lock()
	s, last := p.session, p.last
	p.mu.Unlock()
	if s == nil {
		return fmt.Errorf("not running: %w", last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, err := range s.errs {
		return fmt.Errorf("partition %d: %w", id, err)
	}
	if !s.ready {
		return fmt.Errorf("recovering %d of %d partitions", len(s.claims)-len(s.parts), len(s.claims))
	}
	return nil
}

// Status returns the state of every owned partition, by number.
func (p *Processor) Status() []PartitionStatus {
	s := p.current()
	if s == nil {
		return nil
	}
	var all []PartitionStatus
	for _, part := range s.owned() {
		st := part.state()
		st.Err = s.errOf(st.Partition)
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b PartitionStatus) int { return int(a.Partition - b.Partition) })
	return all
}

func (p *part) state() PartitionStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PartitionStatus{Partition: p.id, Claim: p.claim, Next: p.next, Done: p.done.Offset, Written: p.written,
		Cached: len(p.cache.rows), Timers: len(p.timers.heap), Lag: max(p.high.Load()-p.done.Offset, 0), Moved: p.moved}
}
