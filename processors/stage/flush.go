package stage

import (
	"fmt"
	"time"
)

// flush makes what run handled durable, cut by cut, and returns when run has returned and the last cut is done.
func (u *unit) flush() {
	defer close(u.done)
	linger := time.NewTimer(time.Hour)
	defer linger.Stop()
	for last := false; !last; {
		select {
		case <-u.wake:
			linger.Reset(u.s.cfg.Flow.ReportAfter)
			select {
			case <-u.urgent:
			case <-linger.C:
			case <-u.ended:
				last = true
			}
		case <-u.ended:
			last = true
		}
		if u.dead.Load() {
			return
		}
		if err := u.cut(); err != nil {
			if !u.dead.Swap(true) {
				u.s.fail(fmt.Errorf("unit %s: %w", u.name.Path(), err))
			}
			return
		}
	}
}

// cut takes everything that was handled so far through the order that keeps it right: outputs acked, END markers acked,
// reports acked, and only then the position may be committed.
func (u *unit) cut() error {
	u.mu.Lock()
	outputs := u.outputs
	cut := u.book.Cut()
	u.outputs = newEpoch()
	u.waking, u.hurried = false, false
	u.mu.Unlock()
	if cut == nil {
		return nil
	}
	if err := u.s.cfg.Hook(PointCut); err != nil {
		return err
	}
	if err := outputs.wait(); err != nil {
		return fmt.Errorf("outputs below %d: %w", cut.Position(), err)
	}
	if err := u.s.cfg.Hook(PointOutputs); err != nil {
		return err
	}
	return u.book.Settle(cut)
}
