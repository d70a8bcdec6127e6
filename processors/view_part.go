package processors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/quiesce/quiesce/codecs"
)

// viewPart is goka's storage of one partition of a view: the copy on disk, and what has been read so far. goka writes to
// it from one goroutine at a time; reads come from anywhere, through the follower's lock.
type viewPart struct {
	f       *follower
	id      int32
	dir     string
	topicID codecs.TopicID
	logs    *client
	ctx     context.Context
	fatal   context.CancelCauseFunc // ends the incarnation

	disk    *disk
	judge   Judge
	pending []row // while loading: written in one go
	bytes   int
	changed []string // keys in pending

	loaded           atomic.Bool
	next, start, end atomic.Int64
	seen             atomic.Int64 // last contact with the topic, ns since the epoch
	contact          contact
}

var _ storage.Storage = (*viewPart)(nil)

// Batches of rows while loading.
const (
	viewBatchRows  = 2000
	viewBatchBytes = 1 << 20
)

// Open opens the copy. One that is too old to have seen all deletes, or is ahead of the topic, is begun again.
func (p *viewPart) Open() error {
	d, err := openDisk(p.dir, p.topicID, p.f.log, true)
	if err != nil {
		return err
	}
	p.disk = d
	end, err := p.logs.End(p.ctx, p.f.topic, p.id)
	if err != nil {
		return err
	}
	at := d.At()
	old := !at.Written.IsZero() && time.Since(at.Written) > p.f.cfg.Timing.DeleteRetention/2
	if old || at.Next > end {
		p.f.log.Warn("copy of the view is begun again", "topic", p.f.topic, "partition", p.id, "written", at.Written, "next", at.Next, "end", end)
		if err := d.Discard(); err != nil {
			return err
		}
	}
	p.judge.Claim = d.At().Claim
	p.next.Store(d.At().Next)
	return nil
}

// take is goka's callback for one record.
func (p *viewPart) take(ctx goka.UpdateContext, key string, value []byte) error {
	rec := codecs.Record{Topic: p.f.topic, Partition: p.id, Offset: ctx.Offset(), Key: []byte(key), Value: value}
	stale := false
	if p.f.judged {
		for k, v := range ctx.Headers() {
			rec.Headers = append(rec.Headers, codecs.Header{Key: k, Value: v})
		}
		var err error
		if stale, err = p.judge.Stale(&rec); err != nil {
			err = fmt.Errorf("view of %s, partition %d, offset %d: %w", p.f.topic, p.id, rec.Offset, err)
			p.fatal(err)
			return err
		}
	}
	p.next.Store(rec.Offset + 1)
	p.seen.Store(time.Now().UnixNano())
	p.contact.failed.Store(false)
	if !stale {
		p.pending = append(p.pending, row{key, value})
		p.bytes += len(key) + len(value)
		p.changed = append(p.changed, key)
	}
	if len(p.pending) > 0 && (p.loaded.Load() || len(p.pending) >= viewBatchRows || p.bytes >= viewBatchBytes) {
		return p.flush()
	}
	return nil
}

// flush writes what is pending with the offset to go on from, and tells who waits.
func (p *viewPart) flush() error {
	err := p.disk.Write(p.pending, storeMark{Next: p.next.Load(), Claim: p.judge.Claim, Written: time.Now()})
	if err != nil {
		err = fmt.Errorf("view of %s, partition %d: %w", p.f.topic, p.id, err)
		p.fatal(err)
		return err
	}
	clear(p.pending)
	p.pending, p.bytes = p.pending[:0], 0
	if p.loaded.Load() {
		for _, key := range p.changed {
			p.f.hub.changed(p.id, key)
		}
	}
	p.changed = p.changed[:0]
	return nil
}

// MarkRecovered says that everything which stood in the topic at the start is here.
func (p *viewPart) MarkRecovered() error {
	if err := p.flush(); err != nil {
		return err
	}
	p.loaded.Store(true)
	p.f.hub.all()
	return nil
}

// Close waits for running reads, then closes the files.
func (p *viewPart) Close() error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.loaded.Store(false)
	if p.disk == nil {
		return nil
	}
	d := p.disk
	p.disk = nil
	return d.Close()
}

// get reads one value; nil = none.
func (p *viewPart) get(key string) ([]byte, error) {
	v, err := p.disk.db.Get([]byte(key), nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, nil
	}
	return v, p.check(err)
}

// check ends the incarnation when the copy is damaged: it is read again.
func (p *viewPart) check(err error) error {
	if corrupted(err) {
		p.fatal(fmt.Errorf("copy of %s, partition %d: %w", p.f.topic, p.id, err))
		return errors.Join(ErrViewNotReady, err)
	}
	return err
}

func (p *viewPart) progress() (next, start, end int64) {
	return max(p.next.Load(), p.start.Load()), p.start.Load(), p.end.Load()
}

// GetOffset returns the last offset that is in the copy.
func (p *viewPart) GetOffset(def int64) (int64, error) {
	if next := p.next.Load(); next > 0 {
		return next - 1, nil
	}
	return def, nil
}

// SetOffset does nothing: the offset is written with the rows.
func (p *viewPart) SetOffset(int64) error { return nil }

// Set and Delete are not used: the callback writes.
func (p *viewPart) Set(key string, _ []byte) error { return fmt.Errorf("set %q: %w", key, errOwn) }
func (p *viewPart) Delete(key string) error        { return fmt.Errorf("delete %q: %w", key, errOwn) }

// Has, Get, Iterator and IteratorWithRange complete goka's interface.
func (p *viewPart) Has(key string) (bool, error)        { return p.disk.db.Has([]byte(key), nil) }
func (p *viewPart) Get(key string) ([]byte, error)      { return p.get(key) }
func (p *viewPart) Iterator() (storage.Iterator, error) { return p.IteratorWithRange(nil, nil) }
func (p *viewPart) IteratorWithRange(start, limit []byte) (storage.Iterator, error) {
	return rows{p.disk.db.NewIterator(&util.Range{Start: start, Limit: limit}, nil)}, nil
}
