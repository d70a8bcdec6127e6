package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// DiffConfig names a live table and the log that should explain it.
type DiffConfig struct {
	// Client are the options of the Kafka client: seed brokers, TLS, SASL. Required.
	Client []kgo.Opt
	// Prefix is the deployment. Default codecs.DefaultPrefix.
	Prefix string
	// Machine folds the log, and loads the rows. Required.
	Machine processors.Machine
	// Progress, if not nil, is called after each record of the log.
	Progress func(records int64)
}

// WithDefaults returns the configuration with absent fields filled in.
func (c DiffConfig) WithDefaults() DiffConfig {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	return c
}

// Validate reports what is missing.
func (c DiffConfig) Validate() error {
	var errs []error
	if len(c.Client) == 0 {
		errs = append(errs, errors.New("no options of a Kafka client"))
	}
	if c.Machine == nil {
		errs = append(errs, errors.New("no machine"))
	}
	return errors.Join(errs...)
}

// Diff reads the table first and then folds the log, each partition up to what the table says it has taken from it.
func Diff(ctx context.Context, cfg DiffConfig) (*Report, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	changelog, err := OpenLive(ctx, LiveConfig{Client: cfg.Client, Topic: codecs.Table(cfg.Prefix, cfg.Machine.Role())})
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	parts, err := readTable(ctx, changelog)
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	input, err := OpenLive(ctx, LiveConfig{Client: cfg.Client, Topic: codecs.Topic(cfg.Prefix, cfg.Machine.Input())})
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	if len(parts) != int(input.Topic().Partitions) {
		return nil, fmt.Errorf("diff: table %s has %d partitions, its input %s has %d",
			changelog.Topic().Topic, len(parts), input.Topic().Topic, input.Topic().Partitions)
	}
	d := differ{cfg: cfg, input: input, parts: parts, report: &Report{}}
	state, err := Fold(ctx, FoldConfig{Machine: cfg.Machine, Source: input.Upto(d.ends()), Prefix: cfg.Prefix, Progress: cfg.Progress})
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	return d.report, d.compare(state)
}

// differ compares a table with a fold.
type differ struct {
	cfg    DiffConfig
	input  *Live
	parts  []tablePart
	skip   map[int32]bool // partitions that cannot be compared at all
	report *Report
}

// ends is where the fold of each partition stops: at its position row. Partitions that cannot be compared are left out.
func (d *differ) ends() []int64 {
	d.skip = map[int32]bool{}
	ends := make([]int64, len(d.parts))
	for i := range d.parts {
		t, p := &d.parts[i], int32(i)
		start, end := d.input.Bounds(p)
		refuse := func(format string, args ...any) {
			d.skip[p] = true
			d.report.cannot(p, "", len(t.rows), fmt.Sprintf(format, args...))
		}
		switch {
		case t.position == nil && len(t.rows) == 0:
			// nothing was taken yet
		case t.position == nil:
			refuse("the table has no position row")
		case t.adopted:
			refuse("the input topic was adopted: its former incarnation is not there to be read")
		case t.position.Topic != d.input.Topic().ID:
			refuse("the table follows topic id %s, the input is %s", t.position.Topic, d.input.Topic().ID)
		case t.position.Offset > end:
			refuse("the table stands at offset %d, beyond the end of the input at %d", t.position.Offset, end)
		case t.position.Offset < start:
			refuse("the table stands at offset %d, the input starts at %d: what is between is lost", t.position.Offset, start)
		default:
			ends[i] = t.position.Offset
		}
	}
	return ends
}

// compare judges every row of the table and of the fold.
func (d *differ) compare(state *State) error {
	for i := range d.parts {
		p, t := int32(i), &d.parts[i]
		if d.skip[p] {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(t.rows)) {
			if err := d.tableRow(p, key, t, state); err != nil {
				return err
			}
		}
	}
	for _, r := range state.Rows() {
		if d.skip[r.Partition] {
			continue
		}
		if _, ok := d.parts[r.Partition].rows[r.Key]; ok {
			continue
		}
		switch {
		case r.revived || r.wasQuarantined:
			d.report.cannot(r.Partition, r.Key, 1, "not in the table; an event came while the row was being deleted, or it was quarantined")
		case d.partial(r.Partition):
			d.report.cannot(r.Partition, r.Key, 1, d.partialReason(r.Partition))
		default:
			d.report.altered(r.Partition, r.Key, "", r.text())
		}
	}
	return nil
}

// tableRow judges one row of the table.
func (d *differ) tableRow(p int32, key string, t *tablePart, state *State) error {
	have := t.rows[key]
	if have.Applied >= d.end(t) {
		d.report.cannot(p, key, 1, fmt.Sprintf("ahead of the table's position %d", d.end(t)))
		return nil
	}
	load := d.cfg.Machine.LoadRow
	if have.Part {
		load = d.cfg.Machine.LoadPart
	}
	row, err := load(key, have.row)
	if err != nil {
		return fmt.Errorf("diff: row %s: %w", codecs.KeyString(key), err)
	}
	got := rowText(row, have.Applied)
	want, ok := state.rows[key]
	if !ok {
		want, ok = state.gone[key] // given up, but not yet deleted
	}
	switch {
	case ok && want.text() == got:
		d.report.Same++
	case len(have.Spans) > 0 || ok && want.wasQuarantined:
		d.report.cannot(p, key, 1, "quarantined, or was: what the table left out is not known")
	case ok && want.revived:
		d.report.cannot(p, key, 1, "an event came while the row was being deleted")
	case d.partial(p):
		d.report.cannot(p, key, 1, d.partialReason(p))
	case ok:
		d.report.altered(p, key, got, want.text())
	default:
		d.report.altered(p, key, got, "")
	}
	return nil
}

func (d *differ) end(t *tablePart) int64 {
	if t.position == nil {
		return 0
	}
	return t.position.Offset
}

// partial says whether the log of a partition does not go back to its first record.
func (d *differ) partial(p int32) bool {
	start, _ := d.input.Bounds(p)
	return start > 0
}

func (d *differ) partialReason(p int32) string {
	start, _ := d.input.Bounds(p)
	return fmt.Sprintf("differs, but the log starts at offset %d: what was before is gone", start)
}
