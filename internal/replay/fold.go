package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
)

// FoldConfig says what is folded.
type FoldConfig struct {
	// Machine folds the records. Required.
	Machine processors.Machine
	// Source gives them. Required. It must be the machine's input topic.
	Source Source
	// Prefix is the deployment's name: it is part of the ids of messages. Default codecs.DefaultPrefix.
	Prefix string
	// Transcript gets every record read and every message that it led to, one line each. Default: none.
	Transcript io.Writer
	// Progress, if not nil, is called after each record. Records are read again after a panic of the machine.
	Progress func(records int64)
}

// WithDefaults returns the configuration with absent fields filled in.
func (c FoldConfig) WithDefaults() FoldConfig {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	return c
}

// Validate reports what is missing.
func (c FoldConfig) Validate() error {
	var errs []error
	if c.Machine == nil {
		errs = append(errs, errors.New("no machine"))
	}
	if c.Source == nil {
		errs = append(errs, errors.New("no source"))
	}
	return errors.Join(errs...)
}

// maxFaults bounds how often the fold starts over because of a panic.
const maxFaults = 100

// Fold applies all records of the source to empty rows.
func Fold(ctx context.Context, cfg FoldConfig) (*State, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fold: %w", err)
	}
	faults := map[place]string{}
	for {
		f := newFolder(cfg, faults)
		err := cfg.Source.Each(ctx, f.accept)
		var panicked *stepPanic
		switch {
		case errors.As(err, &panicked) && len(faults) < maxFaults:
			faults[panicked.at] = panicked.reason
			continue
		case err != nil:
			return nil, fmt.Errorf("fold: %w", err)
		case cfg.Transcript == nil:
			return f.state, nil
		}
		break
	}
	f := newFolder(cfg, faults) // now that all faults are known
	f.out = cfg.Transcript
	if err := cfg.Source.Each(ctx, f.accept); err != nil {
		return nil, fmt.Errorf("fold: %w", err)
	}
	return f.state, nil
}

// place is a position in the input.
type place struct {
	partition int32
	offset    int64
}

// stepPanic is a panic of the machine at one record.
type stepPanic struct {
	at     place
	reason string
}

func (p *stepPanic) Error() string {
	return fmt.Sprintf("partition %d, offset %d: machine panicked: %s", p.at.partition, p.at.offset, p.reason)
}
