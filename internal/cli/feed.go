package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/feeder"
	"github.com/quiesce/quiesce/topology"
)

// maxLine is the longest input line in bytes.
const maxLine = 1 << 20

// feedSettings are the settings of feed.
type feedSettings struct {
	connection
	remote
	batch, run, mode, topology string
	key, checkpoint            string
	feeder, feeders            uint32
	labels                     map[string]string
	wait                       bool
	timeout                    time.Duration
	attempted                  bool
}

func (a *app) feedCommand() *cobra.Command {
	var s feedSettings
	cmd := &cobra.Command{
		Use:   "feed FILE.jsonl|-",
		Short: "Start a batch, send one task for each line, seal it",
		Long: `Start a batch, send one record for each line of a JSON lines file to the source topic of a topology, and seal the batch
with their number. A feed that was interrupted goes on where it stopped when it is run again: the checkpoint file holds how
many lines are acknowledged and their digest, and a changed input is refused.

With --wait it then waits like quiesce wait, with its exit codes.`,
		Example: `  quiesce feed --batch nightly-1 --topology pipeline.yaml --key customer tasks.jsonl
  produce-tasks | quiesce feed --batch nightly-1 --topology pipeline.yaml --checkpoint nightly-1.ckpt --wait -`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error { return a.feed(cmd, &s, files[0]) },
	}
	s.connection.flags(cmd)
	s.remote.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&s.batch, "batch", "", "id of the batch (required)")
	f.StringVar(&s.topology, "topology", "", "topology file; its source topic gets the records (required)")
	f.StringVar(&s.mode, "mode", topology.ModeLedger, "how completion is detected: "+strings.Join(topology.Modes(), ", "))
	f.StringVar(&s.run, "run", "", "run id (default: that of the checkpoint, else a new one)")
	f.StringVar(&s.key, "key", "", "field of each line whose value is the record's key (default: no key)")
	f.StringVar(&s.checkpoint, "checkpoint", "", "file that makes the feed resumable (default FILE.jsonl.quiesce; required for -)")
	f.Uint32Var(&s.feeders, "feeders", 1, "how many feeders share the batch")
	f.Uint32Var(&s.feeder, "feeder", 0, "which of them this is, from 0")
	f.StringToStringVar(&s.labels, "label", nil, "labels of the batch, name=value (repeatable)")
	f.BoolVar(&s.wait, "wait", false, "wait until the batch has ended; exits like wait")
	f.DurationVar(&s.timeout, "timeout", 0, "with --wait: give up after this long, exit code 124")
	f.BoolVar(&s.attempted, "attempted", false, "with --wait: accept unknown outcomes (modes markers and observe)")
	a.jsonFlag(cmd)
	return cmd
}

// fed is what feed prints.
type fed struct {
	Batch string `json:"batch"`
	Run   string `json:"run"`
	Total uint32 `json:"total"`
}

func (a *app) feed(cmd *cobra.Command, s *feedSettings, name string) error {
	cfg, err := s.config(cmd, a, name)
	if err != nil {
		return err
	}
	c, err := s.remote.client(cmd)
	if err != nil {
		return err
	}
	in, size, err := a.input(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	done, err := a.send(cmd, cfg, s.key, in, size)
	if err != nil {
		return err
	}
	if !s.wait || !a.json {
		if err := a.printJSON(done); err != nil {
			return err
		}
	}
	if !s.wait {
		return nil
	}
	return a.wait(cmd.Context(), c, s.batch, s.timeout, s.attempted)
}

func (s *feedSettings) config(cmd *cobra.Command, a *app, name string) (feeder.Config, error) {
	cfg := feeder.Config{}
	switch {
	case s.batch == "":
		return cfg, usage(cmd, "--batch is missing")
	case s.topology == "":
		return cfg, usage(cmd, "--topology is missing")
	case name == "-" && s.checkpoint == "":
		return cfg, usage(cmd, "standard input needs --checkpoint FILE")
	case s.timeout < 0:
		return cfg, usage(cmd, "--timeout %s is negative", s.timeout)
	}
	if err := s.connection.validate(cmd); err != nil {
		return cfg, err
	}
	if err := checkMode(cmd, s.mode, false); err != nil {
		return cfg, err
	}
	t, err := loadTopology(cmd, s.topology, s.mode)
	if err != nil {
		return cfg, err
	}
	if s.checkpoint == "" {
		s.checkpoint = name + ".quiesce"
	}
	cfg = feeder.Config{Topology: t, Bootstrap: strings.Join(s.bootstrap, ","), Prefix: s.prefix, Batch: s.batch, Run: s.run, Mode: s.mode,
		Feeders: s.feeders, Feeder: s.feeder, Start: &codecs.BatchStart{Labels: s.labels}, Checkpoint: s.checkpoint, Log: a.log,
		Options: s.options()}
	if err := cfg.Validate(); err != nil {
		return cfg, usage(cmd, "%w", err)
	}
	return cfg, nil
}

// input opens the file; size is 0 when it is not known.
func (a *app) input(cmd *cobra.Command, name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(a.in), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, usage(cmd, "%v", err)
	}
	st, err := f.Stat()
	if err != nil || st.IsDir() {
		return nil, 0, usage(cmd, "%s is not a file that can be read", name)
	}
	return f, st.Size(), nil
}

// send feeds every line and seals.
func (a *app) send(cmd *cobra.Command, cfg feeder.Config, key string, in io.Reader, size int64) (done fed, err error) {
	ctx := cmd.Context()
	f, err := feeder.New(cfg)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Start(ctx); err != nil {
		return done, feedError(cmd, err)
	}
	if n := f.Resumed(); n > 0 {
		a.notef("going on after %d lines that are acknowledged\n", n)
	}
	bars := newBars(a.err)
	line := bars.add("bytes", size)
	defer bars.finish(line)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	read := int64(0)
	for n := 1; lines.Scan(); n++ {
		read += int64(len(lines.Bytes())) + 1
		if err := sendLine(ctx, f, key, lines.Bytes(), n); err != nil {
			return done, feedError(cmd, err)
		}
		line.set(read, size)
	}
	if err := lines.Err(); err != nil {
		return done, fmt.Errorf("input: %w", err)
	}
	total, err := f.Seal(ctx)
	if err != nil {
		return done, feedError(cmd, err)
	}
	return fed{Batch: cfg.Batch, Run: f.Run(), Total: total}, nil
}

// badLine is an input line that is no task.
type badLine struct {
	number int
	reason string
}

func (e *badLine) Error() string { return fmt.Sprintf("line %d: %s", e.number, e.reason) }

// sendLine sends one line as it is. Blank lines are no tasks.
func sendLine(ctx context.Context, f *feeder.Feeder, field string, line []byte, n int) error {
	if len(strings.TrimSpace(string(line))) == 0 {
		return nil
	}
	value := append([]byte(nil), line...)
	if !json.Valid(value) {
		return &badLine{n, "not JSON"}
	}
	var key []byte
	if field != "" {
		var err error
		if key, err = fieldOf(value, field); err != nil {
			return &badLine{n, err.Error()}
		}
	}
	_, err := f.Send(ctx, key, value)
	return err
}

// fieldOf returns a member of a JSON object as text: strings without quotes.
func fieldOf(line []byte, field string) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, errors.New("not a JSON object")
	}
	raw, ok := members[field]
	if !ok || string(raw) == "null" {
		return nil, fmt.Errorf("no field %q for the key", field)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text), nil
	}
	return raw, nil
}

// feedError makes bad input a usage error.
func feedError(cmd *cobra.Command, err error) error {
	var bad *badLine
	if errors.As(err, &bad) || errors.Is(err, feeder.ErrInputChanged) || errors.Is(err, feeder.ErrCheckpoint) {
		return usage(cmd, "%w", err)
	}
	return err
}
