package processors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	ldberrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"

	"github.com/quiesce/quiesce/codecs"
)

// disk is a store on goleveldb: rows and mark in one batch, a bloom filter in front of absent keys. It is a copy of the
// changelog and never ahead of it, so nothing is synced: what a crash of the machine takes is read again. A damaged one
// is deleted and read again as well.
type disk struct {
	db     *leveldb.DB
	dir    string
	log    *slog.Logger
	at     storeMark
	topic  codecs.TopicID
	broken bool
}

var _ store = (*disk)(nil)

// metaKey is beside the reserved keys of the table.
const metaKey = "\x00\x00mark"

// storeDir is the directory of one partition's copy.
func storeDir(dataDir, table string, partition int32) string {
	return filepath.Join(dataDir, table, strconv.Itoa(int(partition)))
}

// openDisk opens the copy in dir, or begins a new one if it is damaged (and may be repaired) or of another incarnation of
// the topic.
func openDisk(dir string, topic codecs.TopicID, log *slog.Logger, repair bool) (*disk, error) {
	d := &disk{dir: dir, log: log, topic: topic}
	err := d.open()
	if repair && corrupted(err) {
		log.Error("local copy is damaged, reading the table again", "dir", dir, "error", err)
		err = d.again()
	}
	if err == nil && d.topic != topic {
		log.Warn("local copy is of another table topic, reading the table again", "dir", dir, "copy", d.topic.String(), "topic", topic.String())
		d.topic = topic
		err = d.Discard()
	}
	if err != nil {
		return nil, fmt.Errorf("open local copy %s: %w", dir, err)
	}
	return d, nil
}

func (d *disk) open() error {
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return err
	}
	db, err := leveldb.OpenFile(d.dir, &opt.Options{Filter: filter.NewBloomFilter(10), WriteBuffer: 4 << 20, BlockCacheCapacity: 4 << 20, NoSync: true})
	if err != nil {
		return err
	}
	d.db = db
	v, err := db.Get([]byte(metaKey), nil)
	switch {
	case errors.Is(err, leveldb.ErrNotFound):
		return nil
	case err != nil:
		return errors.Join(err, db.Close())
	case len(v) != 40:
		return errors.Join(corruption{fmt.Sprintf("mark of %d bytes", len(v))}, db.Close())
	}
	d.at.Next = int64(binary.BigEndian.Uint64(v))
	d.at.Claim = binary.BigEndian.Uint64(v[8:])
	d.at.Written = time.UnixMilli(int64(binary.BigEndian.Uint64(v[16:])))
	copy(d.topic[:], v[24:])
	return nil
}

func (d *disk) again() error {
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	d.at = storeMark{}
	return d.open()
}

// corruption is damage that goleveldb does not see.
type corruption struct{ text string }

func (c corruption) Error() string { return c.text }

func corrupted(err error) bool {
	var c corruption
	return err != nil && (ldberrors.IsCorrupted(err) || errors.As(err, &c))
}

// Get implements store.
func (d *disk) Get(key string) ([]byte, error) {
	v, err := d.db.Get([]byte(key), nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, nil
	}
	return v, d.check(err)
}

// Write implements store.
func (d *disk) Write(rows []row, at storeMark) error {
	var b leveldb.Batch
	for _, r := range rows {
		if r.value == nil {
			b.Delete([]byte(r.key))
		} else {
			b.Put([]byte(r.key), r.value)
		}
	}
	meta := binary.BigEndian.AppendUint64(nil, uint64(at.Next))
	meta = binary.BigEndian.AppendUint64(meta, at.Claim)
	meta = binary.BigEndian.AppendUint64(meta, uint64(at.Written.UnixMilli()))
	b.Put([]byte(metaKey), append(meta, d.topic[:]...))
	if err := d.check(d.db.Write(&b, nil)); err != nil {
		return err
	}
	d.at = at
	return nil
}

// At implements store.
func (d *disk) At() storeMark { return d.at }

// Each implements store.
func (d *disk) Each(fn func(key, value []byte) error) error {
	it := d.db.NewIterator(nil, &opt.ReadOptions{DontFillCache: true})
	defer it.Release()
	for it.Next() {
		if string(it.Key()) == metaKey {
			continue
		}
		if err := fn(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return d.check(it.Error())
}

// Discard implements store.
func (d *disk) Discard() error {
	if err := d.db.Close(); err != nil {
		return err
	}
	return d.again()
}

// Close closes the files. A damaged copy is deleted.
func (d *disk) Close() error {
	err := d.db.Close()
	if d.broken {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}

func (d *disk) check(err error) error {
	if corrupted(err) {
		d.broken = true
		d.log.Error("local copy is damaged, it will be read again", "dir", d.dir, "error", err)
	}
	return err
}
