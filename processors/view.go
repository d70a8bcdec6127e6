package processors

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// ViewConfig says what a View follows and where it keeps its copy.
type ViewConfig struct {
	// Bootstrap are the brokers to ask first (host:port). Required.
	Bootstrap []string
	// Prefix names the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// Machine is whose table is followed; it decodes the rows. Required by NewView.
	Machine Machine
	// Header says whether a table key is that of a header row, not of a part. Default: it has no 0x00.
	Header func(key string) bool
	// DataDir keeps the copy in its folder views; it may be that of a Processor, and of other views. Default as in
	// Config.
	DataDir string
	// ClientID names this client to the brokers. Default "quiesce-view".
	ClientID string
	// Logger gets what operators need to know. Default slog.Default().
	Logger *slog.Logger
	// Security is how to talk to the brokers. Default: plaintext.
	Security Security
	// Timing: Backoff and DeleteRetention count here.
	Timing Timing
}

// WithDefaults returns c with every unset field at its documented default.
func (c ViewConfig) WithDefaults() ViewConfig {
	def(&c.Prefix, codecs.DefaultPrefix)
	def(&c.ClientID, "quiesce-view")
	if c.DataDir == "" {
		c.DataDir = filepath.Join(stateDir(), "quiesce")
	}
	if c.Header == nil {
		c.Header = func(key string) bool { return strings.IndexByte(key, 0) < 0 }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Timing = c.Timing.WithDefaults()
	return c
}

// Validate reports every field that cannot work.
func (c ViewConfig) Validate() error {
	var errs []error
	if len(c.Bootstrap) == 0 {
		errs = append(errs, errors.New("no bootstrap server"))
	}
	if err := codecs.ValidID("prefix", c.Prefix); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// View is a local copy of a machine's table, read-only, kept up to date. Records that stand behind a newer claim than
// their own are left out, as by the owner itself. Reads fail with ErrViewNotReady until everything that stood in the
// table at the start is loaded; a view that has lost the broker goes on answering and says so (State).
//
//	v, err := NewView(ViewConfig{Bootstrap: brokers, Machine: m})
//	go v.Run(ctx)
//	row, ok, err := v.Get("b-1")
type View struct{ follower }

// NewView checks the configuration. Nothing is connected before Run.
func NewView(cfg ViewConfig) (*View, error) {
	cfg = cfg.WithDefaults()
	err := cfg.Validate()
	if cfg.Machine == nil {
		err = errors.Join(err, errors.New("no machine"))
	}
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	topic := codecs.Table(cfg.Prefix, cfg.Machine.Role())
	return &View{follower{cfg: cfg, topic: topic, judged: true, log: cfg.Logger.With("topic", topic), hub: newHub()}}, nil
}

// ViewRow is a row as a view has it.
type ViewRow struct {
	Key         string
	Row         Row
	Partition   int32
	Applied     int64 // highest input offset in it
	Quarantined bool
}

// Get returns the header row of a key; ok = false: there is none.
func (v *View) Get(key string) (r ViewRow, ok bool, err error) {
	parts, done, err := v.read()
	if err != nil {
		return r, false, err
	}
	defer done()
	p := parts[codecs.Partition([]byte(key), int32(len(parts)))]
	b, err := p.get(key)
	if err != nil || b == nil {
		return r, false, err
	}
	r, err = v.load(p.id, key, b)
	return r, err == nil, err
}

func (v *View) load(partition int32, key string, b []byte) (ViewRow, error) {
	e, body, err := ParseEnvelope(b)
	if err != nil {
		return ViewRow{}, fmt.Errorf("row %q: %w", key, err)
	}
	r := ViewRow{Key: key, Partition: partition, Applied: e.Applied, Quarantined: e.Quarantined()}
	if v.cfg.Header(key) {
		r.Row, err = v.cfg.Machine.LoadRow(key, body)
	} else {
		r.Row, err = v.cfg.Machine.LoadPart(key, body)
	}
	if err != nil {
		return ViewRow{}, fmt.Errorf("row %q: %w", key, err)
	}
	return r, nil
}

// Reached says whether the input record at a position can be seen: it is in the row of the key, or the partition as a
// whole is past it. key may be empty.
func (v *View) Reached(key string, partition int32, offset int64) (bool, error) {
	parts, done, err := v.read()
	if err != nil {
		return false, err
	}
	defer done()
	if partition < 0 || int(partition) >= len(parts) {
		return false, nil
	}
	p := parts[partition]
	if key != "" {
		b, err := p.get(key)
		if err != nil {
			return false, err
		}
		if h, err := codecs.ParseRowHeader(b); err == nil && h.Applied >= offset {
			return true, nil
		}
	}
	b, err := p.get(codecs.PositionKey)
	if err != nil || b == nil {
		return false, err
	}
	at, err := parsePosition(b)
	return at.Offset > offset, err
}

// Partitions returns the number of partitions; 0 between two incarnations.
func (v *View) Partitions() int32 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return int32(len(v.parts))
}

// Watch returns a channel that gets a value after each change of the rows of an id, or of its partition's position; ""
// = of anything. Rows belong to one id when their keys are alike up to the first 0x00. Changes in quick succession may give one value. stop must be called.
func (v *View) Watch(id string) (changed <-chan struct{}, stop func()) {
	partition := int32(-1)
	if n := v.Partitions(); id != "" && n > 0 {
		partition = codecs.Partition([]byte(id), n)
	}
	return v.hub.watch(string(codecs.BatchOf([]byte(id))), partition)
}
