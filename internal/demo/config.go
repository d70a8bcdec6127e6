package demo

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/quiesce/quiesce/topology"
)

// Config of a run.
type Config struct {
	// Input is the folder whose .go files are the tasks. Default: the source of the local Go toolchain.
	Input string
	// Mode is how completion is detected: markers (default) or ledger.
	Mode string
	// Batch is the batch id. Default go-index.
	Batch string
	// Partitions of every topic. Default: as declared.
	Partitions int32
	// Listen is the sidecar's address. Default: a free port of 127.0.0.1.
	Listen string
	// Dir keeps local state. Default: a temporary folder, removed at the end.
	Dir string
	// Keep leaves everything running after the result until the context ends.
	Keep bool
	// Watch gets what can be looked at while it runs: once when everything is up, before the first task is fed, then some
	// times a second. May be nil.
	Watch func(Progress)
	// Done gets the result before Keep begins to wait. May be nil.
	Done func(*Result)
	// Log gets what goes wrong. Default: discarded.
	Log *slog.Logger
}

// WithDefaults fills in the documented defaults.
func (c Config) WithDefaults() (Config, error) {
	if c.Input == "" {
		dir, err := GoSource()
		if err != nil {
			return c, err
		}
		c.Input = dir
	}
	if c.Mode == "" {
		c.Mode = topology.ModeMarkers
	}
	if c.Batch == "" {
		c.Batch = "go-index"
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Watch == nil {
		c.Watch = func(Progress) {}
	}
	if c.Done == nil {
		c.Done = func(*Result) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Validate reports a mode that the topology does not have.
func (c Config) Validate() error {
	if c.Mode != topology.ModeMarkers && c.Mode != topology.ModeLedger {
		return fmt.Errorf("mode %q: markers or ledger", c.Mode)
	}
	return nil
}

// Progress is how far a run is.
type Progress struct {
	Sidecar string         // address, "" while it is not up
	Broker  string         // address
	Tasks   int            // in all
	Stages  map[string]int // records handled by each stage
}

// Result of a run.
type Result struct {
	Batch       string         `json:"batch"`
	Run         string         `json:"run"`
	Mode        string         `json:"mode"`
	Input       string         `json:"input"`
	State       string         `json:"state"`
	Stages      map[string]int `json:"stages"` // distinct records handled, by stage
	Index       *Index         `json:"index"`
	Plain       *Index         `json:"-"`           // the plain loop over the same folder
	Differences []string       `json:"differences"` // between the two; none is right
	Skipped     []Skipped      `json:"skipped"`     // folders that could not be listed
	Wall        time.Duration  `json:"wall_ns"`     // first record fed to completion event
	Delay       time.Duration  `json:"delay_ns"`    // last task's end to completion event
	Completions int            `json:"completions"` // distinct terminal events seen; 1 is right
}
