package table

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
)

// Config of a view.
type Config struct {
	// Client are the options of the clients that read: brokers, TLS, SASL. Required.
	Client []kgo.Opt
	// Prefix is the deployment. Required.
	Prefix string
	// Log gets what goes wrong. Default slog.Default().
	Log *slog.Logger
}

// View is sidecar.Batches over a live deployment. Its methods may be called from any goroutine.
type View struct {
	cfg      Config
	table    string
	outcomes string

	mu       sync.RWMutex
	parts    map[int32]*partition
	reasons  map[string]*codecs.TaskOutcome // by key of the outcomes topic
	ranges   map[string][]ranged            // by batch: those of more than one task
	left     map[string]map[int32]int64     // offsets to load, by topic and partition
	total    int64                          // of these, at the start
	loaded   bool
	stale    bool // the last fetch failed
	ids      []string
	idsDirty bool
	watchers map[chan struct{}]string
}

// partition is one partition of the table.
type partition struct {
	judge    processors.Judge
	rows     map[string]*record
	chunks   map[string][]byte // rows of parts, by key
	position int64             // input offset below which all is durable
}

// record is the last valid record of a batch.
type record struct {
	processors.Envelope
	id        string
	partition int32
	bytes     []byte
	row       *batch.Row // decoded when asked for
}

var _ sidecar.Batches = (*View)(nil)

// New makes a view that is empty until Run.
func New(cfg Config) *View {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &View{cfg: cfg, table: codecs.Table(cfg.Prefix, codecs.GroupController), outcomes: codecs.Topic(cfg.Prefix, codecs.TopicOutcomes),
		parts: map[int32]*partition{}, reasons: map[string]*codecs.TaskOutcome{}, ranges: map[string][]ranged{},
		watchers: map[chan struct{}]string{}}
}

// Run follows the topics until ctx ends.
func (v *View) Run(ctx context.Context) error {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.ConsumeTopics(v.table, v.outcomes), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(500 * time.Millisecond)}, v.cfg.Client...)...)
	if err != nil {
		return fmt.Errorf("view of %s: %w", v.table, err)
	}
	defer c.Close()
	if err := v.measure(ctx, c); err != nil {
		return err
	}
	for ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		if err := v.take(&fetches); err != nil {
			return err
		}
	}
	return nil
}

// measure notes how much there is to load.
func (v *View) measure(ctx context.Context, c *kgo.Client) error {
	adm := kadm.NewClient(c)
	ends, err := adm.ListEndOffsets(ctx, v.table, v.outcomes)
	if err != nil {
		return fmt.Errorf("view of %s: %w", v.table, err)
	}
	starts, err := adm.ListStartOffsets(ctx, v.table, v.outcomes)
	if err != nil {
		return fmt.Errorf("view of %s: %w", v.table, err)
	}
	if err := errors.Join(ends.Error(), starts.Error()); err != nil {
		return fmt.Errorf("view of %s: %w", v.table, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = map[string]map[int32]int64{v.table: {}, v.outcomes: {}}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		if end.Offset > start.Offset {
			v.left[end.Topic][end.Partition] = end.Offset
			v.total += end.Offset - start.Offset
		}
	})
	v.settle()
	return nil
}

// settle sees whether everything is loaded; the lock is held.
func (v *View) settle() { v.loaded = len(v.left[v.table]) == 0 && len(v.left[v.outcomes]) == 0 }

// take files what was fetched.
func (v *View) take(fetches *kgo.Fetches) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stale = false
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.Canceled) {
			v.stale = true
			v.cfg.Log.Warn("view cannot read", "topic", e.Topic, "partition", e.Partition, "error", e.Err)
		}
	}
	changed := map[string]bool{}
	for it := fetches.RecordIter(); !it.Done(); {
		k := it.Next()
		id, err := v.file(k)
		if err != nil {
			return fmt.Errorf("view of %s: partition %d, offset %d: %w", k.Topic, k.Partition, k.Offset, err)
		}
		changed[id] = true
		if end, ok := v.left[k.Topic][k.Partition]; ok && k.Offset >= end-1 {
			delete(v.left[k.Topic], k.Partition)
		}
	}
	if !v.loaded {
		v.settle()
	}
	v.wake(changed)
	return nil
}

// wake tells those who watch one of the batches; a position ("" as id) concerns everybody.
func (v *View) wake(changed map[string]bool) {
	for ch, id := range v.watchers {
		if len(changed) > 0 && (id == "" || changed[""] || changed[id]) {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

// Readiness says how much is loaded.
func (v *View) Readiness() sidecar.Readiness {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.loaded {
		return sidecar.Readiness{Percent: 100, OK: true, Stale: v.stale}
	}
	left := int64(0)
	for _, parts := range v.left {
		for range parts {
			left++
		}
	}
	if v.total == 0 || v.left == nil {
		return sidecar.Readiness{}
	}
	done := float64(len(v.parts)) / float64(max(int64(len(v.parts))+left, 1)) * 100
	return sidecar.Readiness{Percent: min(done, 99)}
}

// Watch gives a value after each change of the batch's row or of a position.
func (v *View) Watch(id string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watchers[ch] = id
	return ch, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.watchers, ch)
	}
}

// Reached says whether the control record at p is durable in the table, or had no effect on it.
func (v *View) Reached(id string, p api.Position) (bool, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.loaded {
		return false, sidecar.ErrNotReady
	}
	part := v.parts[p.Partition]
	if part == nil {
		return false, nil
	}
	if part.position > p.Offset {
		return true, nil
	}
	r := part.rows[id]
	return r != nil && r.Applied >= p.Offset, nil
}
