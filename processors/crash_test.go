package processors

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

var seedFlag = flag.Uint64("seed", 0, "run this schedule of the crash matrix only")

// schedule is one random history of a partition: owners that die at any step, with any disk; owners that sleep and wake
// when another one has taken over; records that arrive after the death of their sender; compaction; versions of the code.
type schedule struct {
	w      *world
	rnd    *rand.Rand
	off    rules
	fault  error // found while it ran
	disks  []*memory
	lives  int
	depth  int
	asleep int
	src    int64 // upstream: next offset
	keys   int
	gone   map[string]bool

	proc   *process
	part   *part
	disk   *memory
	faults *faults
}

// runSchedule returns the fault that a schedule shows, nil when all is right.
func runSchedule(seed uint64, off rules) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("PANIC: %v", r)
		}
	}()
	s := &schedule{w: newWorld(seed), off: off, keys: 3, gone: map[string]bool{}}
	s.rnd = s.w.rnd
	s.w.check = s.checkCommit
	s.w.wrote = s.checkPosition
	s.disk = newMemory()
	for range 12 + s.rnd.IntN(20) {
		s.act()
		if s.fault != nil {
			return s.fault
		}
	}
	return s.end()
}

// end lets everything arrive, runs a last owner that does not die, and asks for the verdict.
func (s *schedule) end() error {
	s.arrive()
	if s.part != nil && s.proc.dead {
		s.part = nil
	}
	for try := 0; ; try++ {
		if s.part == nil {
			s.restart(-1)
		}
		err := s.w.feed(s.part, 1<<30)
		if err == nil {
			err = settle(s.part)
		}
		if err == nil {
			break
		}
		if try == 20 {
			return fmt.Errorf("STUCK: %w", err)
		}
		s.part = nil
	}
	s.compact()
	if s.fault != nil {
		return s.fault
	}
	return s.w.verdict()
}

func (s *schedule) act() {
	if s.part == nil {
		s.restart(s.rnd.IntN(60))
		return
	}
	var err error
	switch s.rnd.IntN(14) {
	case 0, 1, 2:
		s.input()
	case 3, 4, 5:
		err = s.w.feed(s.part, 1+s.rnd.IntN(4))
	case 6, 7, 8:
		err = flushNow(s.part)
	case 9:
		err = s.part.lookForStrangers(context.Background())
		if err == nil {
			s.compact()
		}
	case 10:
		s.crash()
	case 11:
		err = s.sleep()
	case 12:
		s.arrive()
	case 13:
		s.disks = append(s.disks, s.disk.copy())
	}
	if err != nil || s.proc.dead {
		s.lost(err)
	}
}

// lost ends an ownership. A failure of the machine leaves the process alive.
func (s *schedule) lost(err error) {
	if errors.Is(err, errStep) && !s.proc.dead {
		budget := s.proc.budget
		s.part = nil
		s.takeOver(budget)
		return
	}
	if s.proc.dead {
		s.crash()
		return
	}
	s.part = nil
}

func (s *schedule) crash() {
	s.proc.dead = true
	s.part, s.faults = nil, nil
	switch s.rnd.IntN(4) {
	case 0:
		s.disk = newMemory()
	case 1:
		if len(s.disks) > 0 {
			s.disk = s.disks[s.rnd.IntN(len(s.disks))].copy()
		}
	default:
		s.disk = s.disk.copy()
	}
}

func (s *schedule) restart(budget int) {
	s.proc = nil
	s.takeOver(budget)
}

func (s *schedule) takeOver(budget int) {
	s.lives++
	version := fmt.Sprint("v", s.lives)
	s.proc = &process{w: s.w, budget: budget, lateness: s.rnd.IntN(4) == 0}
	if budget >= 0 && s.rnd.IntN(4) == 0 {
		s.proc.flaky = 20
	}
	if s.faults == nil {
		s.faults = newFaults()
	}
	p, err := s.w.own(s.proc, s.disk, &tally{vary: func() string { return version }}, s.faults, s.off)
	if err != nil {
		if !s.proc.dead && !errors.Is(err, ErrZombie) && !errors.Is(err, errCompacted) && !errors.Is(err, errBroker) {
			s.fault = fmt.Errorf("TAKE-OVER: %w", err)
		}
		s.part = nil
		if s.proc.dead {
			s.crash()
		}
		return
	}
	s.part = p
}

// sleep flushes, and at one of the points of the cut the owner is suspended: another one takes over and works, then the
// first one wakes and goes on until it finds out.
func (s *schedule) sleep() error {
	if s.depth >= 2 {
		return nil
	}
	if err := s.w.feed(s.part, 1+s.rnd.IntN(3)); err != nil {
		return err
	}
	zombie, proc, faults := s.part, s.proc, s.faults
	at := []string{PointClosed, PointRowsSent, PointRowsAcked, PointGapHandled, PointStored, PointOutputsSent, PointOutputsDone}[s.rnd.IntN(7)]
	slept := false
	proc.hooks = func(point string) {
		if point != at || slept {
			return
		}
		slept = true
		s.depth++
		s.asleep++
		s.faults = nil
		if s.rnd.IntN(2) == 0 {
			s.disk = newMemory()
		} else {
			s.disk = s.disk.copy()
		}
		s.restart(s.rnd.IntN(60) + 5)
		for range s.rnd.IntN(8) {
			if s.fault == nil {
				s.act()
			}
		}
		s.depth--
		s.asleep--
	}
	err := flushNow(zombie)
	proc.hooks = nil
	if !slept {
		return err
	}
	if err == nil && !proc.dead { // it does not know yet
		if s.w.feed(zombie, 2) == nil {
			_ = flushNow(zombie)
		}
	}
	_ = faults
	return nil
}

// arrive delivers what dead processes had sent.
func (s *schedule) arrive() {
	for _, f := range s.w.late {
		f()
	}
	s.w.late = nil
}

// compact runs the cleaner when the assumption allows it: no zombie sleeps, nothing stale is unrepaired.
func (s *schedule) compact() {
	if s.asleep > 0 || len(s.w.late) > 0 || s.part == nil {
		return
	}
	if err := s.part.lookForStrangers(context.Background()); err != nil {
		return
	}
	s.w.compact(wTable)
	s.w.compact(wStatus)
}

func (s *schedule) input() {
	key := fmt.Sprint("k", s.rnd.IntN(s.keys))
	for s.gone[key] {
		s.keys++
		key = fmt.Sprint("k", s.keys-1)
	}
	s.w.now = s.w.now.Add(time.Millisecond)
	switch n := s.rnd.IntN(20); {
	case n < 9:
		s.w.report(key, s.rnd.Uint32N(200), s.rnd.Uint32N(200))
	case n < 13: // of another machine, with repeats of what came before
		from := max(0, s.src-s.rnd.Int64N(3))
		for o := from; o <= s.src; o++ {
			s.w.produce(&codecs.Event{Type: codecs.TypeBatchReport, ID: fmt.Sprint("u", o), Data: reportOf(uint32(o % 200)),
				Src: codecs.Src{Group: wTestSrc, Partition: 3, Offset: o}}, fmt.Sprint("u", o%2))
		}
		s.src++
	case n < 15:
		s.w.seal(key, s.rnd.Uint32N(6))
	case n < 16:
		s.w.command(key, "panic")
	case n < 17:
		s.w.command(key, "repair")
	case n < 18:
		s.w.append(wInput, []byte(key), []byte("junk"), nil)
	default:
		s.w.command(key, "repair") // so that the marker is taken
		s.w.command(key, "collect")
		s.gone[key] = true
	}
}

// checkCommit: below a committed offset, rows and outputs are in their topics.
func (s *schedule) checkCommit(next int64) { s.durable("commit", next) }

// checkPosition: the same holds for a position row, when it is written.
func (s *schedule) checkPosition(rec *codecs.Record) {
	if rec.Topic != wTable || string(rec.Key) != codecs.PositionKey || rec.Value == nil {
		return
	}
	if p, err := parsePosition(rec.Value); err == nil {
		s.durable("position", p.Offset)
	}
}

func (s *schedule) durable(what string, next int64) {
	if s.fault != nil {
		return
	}
	have := map[string]bool{}
	for _, rec := range s.w.log(wEvents).recs {
		v, _ := rec.Header(codecs.HeaderSrc)
		src, err := codecs.ParseSrc(v)
		if err == nil {
			have[fmt.Sprintf("%d/%d", src.Offset, src.Index)] = true
		}
	}
	for _, out := range s.w.oracle().outputs {
		var o int64
		var id string
		_, _ = fmt.Sscan(out, &id)
		_, _ = fmt.Sscanf(id, "%d/", &o)
		if o < next && !have[id] {
			s.fault = fmt.Errorf("EARLY %s %d: output %s is not there", what, next, out)
		}
	}
}

// long says whether to run the full matrices (make test-long).
func long() bool { return os.Getenv("QUIESCE_LONG") == "1" || os.Getenv("QUIESCE_TEST_LONG") == "1" }

func TestCrashMatrix(t *testing.T) {
	n := uint64(400)
	if long() {
		n = 20_000
	}
	seeds := make([]uint64, 0, n+1)
	if *seedFlag != 0 {
		seeds = append(seeds, *seedFlag)
	} else {
		for i := range n {
			seeds = append(seeds, i+1)
		}
		seeds = append(seeds, uint64(time.Now().UnixNano()))
	}
	for _, seed := range seeds {
		require.NoError(t, runSchedule(seed, rules{}), "go test ./processors -run TestCrashMatrix -seed %d", seed)
	}
	t.Logf("%d schedules, the fresh one has seed %d", len(seeds), seeds[len(seeds)-1])
}
