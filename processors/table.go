package processors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lovoo/goka/storage"
	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/util"
)

// table is goka's storage of one partition: its life is that of one ownership. Open takes the partition over,
// MarkRecovered starts the flusher, Close does the last cut.
type table struct {
	s    *session
	id   int32
	disk *disk
	part *part
	stop context.CancelCauseFunc
	done chan struct{}
}

var _ storage.Storage = (*table)(nil)

// Open claims the partition and brings the local copy up to date.
func (t *table) Open() error {
	env := t.s.env
	d, err := openDisk(storeDir(t.s.cfg.DataDir, env.table, t.id), t.s.tableID, env.log, !env.off.keepDamaged)
	if err != nil {
		return t.s.refuse(t.id, err)
	}
	t.disk = d
	start := time.Now()
	p, err := takeOver(t.s.ctx, env, t.id, d)
	if err != nil {
		return t.s.refuse(t.id, err)
	}
	env.log.Info("partition taken over", "partition", t.id, "claim", p.claim, "position", p.next, "seconds", time.Since(start).Seconds())
	p.mark = func(next int64) { t.s.group.MarkOffset(env.input, t.id, next, "") }
	p.onFail = func(err error) { t.s.failed(t.id, err) }
	t.part = p
	return nil
}

// MarkRecovered starts the flusher. goka calls it once, in the setup of the session.
func (t *table) MarkRecovered() error {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(t.s.ctx)) // the last cut is after the session's end
	t.stop, t.done = stop, make(chan struct{})
	go func() {
		defer close(t.done)
		_ = t.part.run(ctx) // reported by onFail
	}()
	t.s.add(t.part)
	return nil
}

// Close does the last cut, within Timing.Drain, and closes the files.
func (t *table) Close() error {
	if t.done != nil {
		t.part.stop()
		drain := time.NewTimer(t.s.cfg.Timing.Drain)
		defer drain.Stop()
		select {
		case <-t.done:
		case <-drain.C:
			t.s.env.log.Warn("partition not drained in time", "partition", t.id)
			t.stop(errors.New("not drained in time"))
			<-t.done
		}
		t.stop(nil)
	}
	if t.disk == nil {
		return nil
	}
	d := t.disk
	t.disk = nil
	return d.Close()
}

// Has implements storage.Storage.
func (t *table) Has(key string) (bool, error) { return t.disk.db.Has([]byte(key), nil) }

// Get returns the record value; see ParseEnvelope.
func (t *table) Get(key string) ([]byte, error) { return t.disk.Get(key) }

// Set, Delete and SetOffset are the runtime's: goka has no reason to call them.
func (t *table) Set(key string, _ []byte) error { return fmt.Errorf("set %q: %w", key, errOwn) }
func (t *table) Delete(key string) error        { return fmt.Errorf("delete %q: %w", key, errOwn) }
func (t *table) SetOffset(int64) error          { return fmt.Errorf("set offset: %w", errOwn) }

// GetOffset says that goka has nothing to load (verifier.GetOffset).
func (t *table) GetOffset(int64) (int64, error) { return 0, nil }

// Iterator implements storage.Storage.
func (t *table) Iterator() (storage.Iterator, error) { return t.IteratorWithRange(nil, nil) }

// IteratorWithRange implements storage.Storage. An empty limit makes start a prefix, as in goka's own storage.
func (t *table) IteratorWithRange(start, limit []byte) (storage.Iterator, error) {
	r := &util.Range{Start: start, Limit: limit}
	if len(limit) == 0 {
		r = util.BytesPrefix(start)
	}
	return rows{t.disk.db.NewIterator(r, nil)}, nil
}

type rows struct{ iterator.Iterator }

func (r rows) Err() error             { return r.Error() }
func (r rows) Value() ([]byte, error) { return r.Iterator.Value(), nil }
