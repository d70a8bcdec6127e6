package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quiesce/quiesce/codecs"
)

// world is a broker in memory without goroutines: a send is appended and acknowledged before it returns, unless its
// process is dead. Each topic has one partition.
type world struct {
	mu     sync.Mutex // of topics; tests read what is settled without it
	rnd    *rand.Rand
	topics map[string]*logFile
	late   []func() // records of dead processes that are still on their way
	now    time.Time
	commit int64            // committed offset of the group
	check  func(next int64) // called when an offset is committed
	wrote  func(*codecs.Record)

	partitions int32    // that the input has; the world holds one of them. 0 = 1
	metrics    *metrics // shared by all owners; nil = each has its own
}

type logFile struct {
	recs []*codecs.Record // by offset; compaction takes some away
	end  int64
	gone int64 // start of the log
}

func newWorld(seed uint64) *world {
	return &world{rnd: rand.New(rand.NewPCG(seed, 1)), topics: map[string]*logFile{}, now: time.UnixMilli(1_700_000_000_000),
		check: func(int64) {}, wrote: func(*codecs.Record) {}}
}

func (w *world) log(topic string) *logFile {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.topics[topic] == nil {
		w.topics[topic] = &logFile{}
	}
	return w.topics[topic]
}

func (w *world) append(topic string, key, value []byte, headers []codecs.Header) int64 {
	l := w.log(topic)
	rec := &codecs.Record{Topic: topic, Key: slices.Clone(key), Value: slices.Clone(value), Headers: slices.Clone(headers)}
	w.mu.Lock()
	rec.Offset, rec.Time = l.end, w.now.UnixMilli()
	l.recs = append(l.recs, rec)
	l.end++
	w.mu.Unlock()
	w.wrote(rec)
	return rec.Offset
}

func (w *world) end(topic string) int64 {
	l := w.log(topic)
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.end
}

func (w *world) records(topic string) []*codecs.Record {
	l := w.log(topic)
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(l.recs)
}

// compact keeps the last record of each key, and never removes the last record of the log.
func (w *world) compact(topic string) {
	l := w.log(topic)
	last := map[string]int64{}
	for _, r := range l.recs {
		last[string(r.Key)] = r.Offset
	}
	l.recs = slices.DeleteFunc(l.recs, func(r *codecs.Record) bool {
		return last[string(r.Key)] != r.Offset && r.Offset != l.end-1
	})
}

// process is one life of an instance: it dies when its budget of steps is used up.
type process struct {
	mu       sync.Mutex
	w        *world
	budget   int // steps until it dies; < 0 = for ever
	dead     bool
	lateness bool // what it sends when dead still arrives, later
	flaky    int  // one of so many sends fails; 0 = none
	hooks    func(point string)
}

var (
	errDead   = errors.New("process is dead")
	errBroker = errors.New("broker refused")
)

// step returns whether the process is alive after one more step.
func (p *process) step() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budget == 0 {
		p.dead = true
	}
	p.budget--
	return !p.dead
}

func (p *process) flakiness() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flaky
}

// Send implements producer.
func (p *process) Send(topic string, _ int32, key, value []byte, headers []codecs.Header, done func(int64, error)) {
	wasDead := p.dead
	if p.step() {
		if n := p.flakiness(); n > 0 && p.w.rnd.IntN(n) == 0 {
			done(-1, errBroker)
			return
		}
		done(p.w.append(topic, key, value, headers), nil)
		return
	}
	arrive := func() { p.w.append(topic, key, value, headers) }
	switch {
	case p.lateness:
		p.w.late = append(p.w.late, arrive)
	case !wasDead && p.w.rnd.IntN(2) == 0: // the ack is lost, not the record
		arrive()
	}
	done(-1, errDead)
}

// Start implements logs.
func (p *process) Start(_ context.Context, topic string, _ int32) (int64, error) {
	return p.w.log(topic).gone, nil
}

// End implements logs.
func (p *process) End(_ context.Context, topic string, _ int32) (int64, error) {
	return p.w.end(topic), nil
}

// Read implements logs.
func (p *process) Read(_ context.Context, topic string, _ int32, from, to int64, fn func(*codecs.Record) error) error {
	for _, r := range p.w.records(topic) {
		if r.Offset >= from && r.Offset < to {
			c := *r
			if err := fn(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

// disk of a process, in memory.
type memory struct {
	p    *process
	rows map[string][]byte
	at   storeMark
}

var _ store = (*memory)(nil)

func newMemory() *memory { return &memory{rows: map[string][]byte{}} }

func (m *memory) copy() *memory { return &memory{rows: maps.Clone(m.rows), at: m.at} }

func (m *memory) Get(key string) ([]byte, error) { return slices.Clone(m.rows[key]), nil }
func (m *memory) Write(rows []row, at storeMark) error {
	if !m.p.step() {
		return errDead
	}
	for _, r := range rows {
		if r.value == nil {
			delete(m.rows, r.key)
		} else {
			m.rows[r.key] = slices.Clone(r.value)
		}
	}
	m.at = at
	return nil
}
func (m *memory) At() storeMark { return m.at }
func (m *memory) Each(fn func(key, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(m.rows)) {
		if err := fn([]byte(k), m.rows[k]); err != nil {
			return err
		}
	}
	return nil
}
func (m *memory) Discard() error {
	m.rows, m.at = map[string][]byte{}, storeMark{}
	return nil
}

const (
	wPrefix  = "w"
	wInput   = "w.control"
	wEvents  = "w.events"
	wStatus  = "w.status"
	wDead    = "w.dead-letter"
	wTable   = "w.controller-table"
	wTestSrc = "w.upstream"
)

var wTopicID = codecs.TopicID{1}

// env of a process in the world.
func (w *world) env(p *process, m Machine, f *faults, off rules) *env {
	if f == nil {
		f = newFaults()
	}
	e := &env{machine: m, prefix: wPrefix, group: "w.controller", source: "/quiesce/w/w.controller", owner: "test", input: wInput, table: wTable,
		topicID: wTopicID, partitions: max(w.partitions, 1), hasStatus: true, out: p, logs: p, log: slog.New(slog.DiscardHandler), m: w.metrics,
		timing: Timing{}.WithDefaults(), cacheBytes: 700, now: func() time.Time { return w.now }, faults: f,
		faultOf: func(int32, error) {}, off: off}
	if e.m == nil {
		e.m = newMetrics(nil, "test")
	}
	e.hook = func(point string, _ int32) {
		p.step()
		if p.hooks != nil && !p.dead {
			p.hooks(point)
		}
	}
	return e
}

// own takes the partition over for a process.
func (w *world) own(p *process, disk *memory, m Machine, f *faults, off rules) (*part, error) {
	disk.p = p
	part, err := takeOver(context.Background(), w.env(p, m, f, off), 0, disk)
	if err != nil {
		return nil, err
	}
	part.mark = func(next int64) {
		if p.dead {
			return
		}
		w.commit = max(w.commit, next)
		w.check(next)
	}
	return part, nil
}

// feed hands the part up to n inputs that it has not seen.
func (w *world) feed(p *part, n int) error {
	for _, r := range w.log(wInput).recs {
		if n == 0 {
			return nil
		}
		if r.Offset < p.next {
			continue
		}
		n--
		if err := p.handle(r); err != nil {
			return err
		}
	}
	return nil
}

// flushNow closes the open cut and flushes it.
func flushNow(p *part) error {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return p.err
	}
	c, err := p.closeCut()
	if err != nil {
		p.failLocked(err)
	}
	p.mu.Unlock()
	if err == nil {
		err = p.flush(context.Background(), c)
	}
	if err != nil {
		p.fail(err)
	}
	return err
}

// settle makes all that is open durable, the position and deletes included.
func settle(p *part) error {
	for range 4 {
		if err := flushNow(p); err != nil {
			return err
		}
	}
	return p.lookForStrangers(context.Background())
}

// table folds the changelog as a reader does: stale records do not count.
func (w *world) table(topic string) (map[string]*codecs.Record, error) {
	rows := map[string]*codecs.Record{}
	var j Judge
	for _, r := range w.log(topic).recs {
		stale, err := j.Stale(r)
		if err != nil {
			return nil, err
		}
		if stale {
			continue
		}
		if r.Value == nil {
			delete(rows, string(r.Key))
		} else {
			rows[string(r.Key)] = r
		}
	}
	return rows, nil
}

// produce appends an input of the machine.
func (w *world) produce(ev *codecs.Event, key string) int64 {
	rec, err := codecs.Encode(wInput, key, "/test", ev)
	if err != nil {
		panic(err)
	}
	return w.append(wInput, rec.Key, rec.Value, rec.Headers)
}

func (w *world) report(key string, indexes ...uint32) int64 {
	return w.produce(&codecs.Event{Type: codecs.TypeBatchReport, ID: fmt.Sprint(w.end(wInput)), Data: reportOf(indexes...)}, key)
}

func (w *world) seal(key string, total uint32) int64 {
	return w.produce(&codecs.Event{Type: codecs.TypeBatchSeal, ID: fmt.Sprint(w.end(wInput)), Data: &codecs.BatchSeal{Run: "r", Total: total}}, key)
}

func (w *world) command(key, verb string) int64 {
	return w.produce(&codecs.Event{Type: codecs.TypeBatchCommand, ID: fmt.Sprint(w.end(wInput)), Data: &codecs.BatchCommand{Id: "c", Verb: verb}}, key)
}

func reportOf(indexes ...uint32) *codecs.BatchReport {
	rep := &codecs.BatchReport{Run: "r"}
	for _, i := range indexes {
		rep.Items = append(rep.Items, &codecs.ReportItem{First: i, Outcome: codecs.OK})
	}
	return rep
}
