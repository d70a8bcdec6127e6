package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/job"
)

var _ processors.Machine = (*job.Machine)(nil)

// env runs events against rows the way the runtime does: one row per key, encoded and loaded again after every event.
type env struct {
	m    *job.Machine
	cfg  job.Config
	rows map[string][]byte
	off  int64
	now  int64
	sent []codecs.Message
}

func newEnv(t testing.TB, cfg job.Config) *env {
	t.Helper()
	m, err := job.New(cfg)
	require.NoError(t, err)
	return &env{m: m, cfg: cfg, rows: map[string][]byte{}, now: 1000}
}

func (e *env) row(t testing.TB, key string) *job.Row {
	b, ok := e.rows[key]
	if !ok {
		return e.m.NewRow(key).(*job.Row)
	}
	r, err := e.m.LoadRow(key, b)
	require.NoError(t, err)
	return r.(*job.Row)
}

// send applies one event and returns the messages.
func (e *env) send(t testing.TB, key, id, typ string, data proto.Message) []codecs.Message {
	t.Helper()
	e.off++
	return e.sendAt(t, e.off, key, id, typ, data)
}

func (e *env) sendAt(t testing.TB, off int64, key, id, typ string, data proto.Message) []codecs.Message {
	t.Helper()
	rec, err := codecs.Encode("quiesce.jobs", key, "/quiesce/test", &codecs.Event{Type: typ, ID: id, Data: data})
	require.NoError(t, err)
	rec.Partition, rec.Offset, rec.Time = 0, off, e.now
	var ev codecs.Event
	require.NoError(t, e.m.Decode(&rec, &ev))
	r := e.row(t, key)
	out := e.m.Step(r, nil, off, &ev, nil)
	b, err := r.AppendBinary(nil)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), e.m.MaxRowBytes())
	e.rows[key] = b
	e.sent = append(e.sent, out...)
	return out
}

func line(m codecs.Message) string {
	key := strings.ReplaceAll(fmt.Sprintf("%q", m.Key), `"`, "")
	if m.Data == nil {
		return fmt.Sprintf("%s %s %s null", m.Topic, key, m.Type)
	}
	var c bytes.Buffer
	if err := json.Compact(&c, []byte(protojson.MarshalOptions{UseProtoNames: true}.Format(m.Data))); err != nil {
		return err.Error()
	}
	b := c.String()
	if m.ID != "" {
		return fmt.Sprintf("%s %s %s id=%s %s", m.Topic, key, m.Type, m.ID, b)
	}
	return fmt.Sprintf("%s %s %s %s", m.Topic, key, m.Type, b)
}

// unkey writes / for the 0x00 in a key.
func unkey(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		cfg := job.Config{}
		var e *env
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "config":
				d.MaybeScanArgs(t, "limit", &cfg.MaxPerCust)
				d.MaybeScanArgs(t, "retention", &cfg.RetentionMs)
				return ""
			case "type":
				def := &codecs.JobType{}
				if err := protojson.Unmarshal([]byte(d.Input), def); err != nil {
					d.Fatalf(t, "%v", err)
				}
				cfg.Types = append(cfg.Types, def)
				if _, err := job.New(cfg); err != nil {
					cfg.Types = cfg.Types[:len(cfg.Types)-1]
					return err.Error()
				}
				return ""
			}
			if e == nil {
				e = newEnv(t, cfg)
			}
			return e.run(t, d)
		})
	})
}

// run executes one command: an event type with key=, id= and at= arguments and JSON data, or row.
func (e *env) run(t *testing.T, d *datadriven.TestData) string {
	var key, id string
	d.ScanArgs(t, "key", &key)
	key = unkey(key)
	d.MaybeScanArgs(t, "at", &e.now)
	if d.Cmd == "row" {
		return e.row(t, key).String() + fmt.Sprintf("\ndeadline %d", e.m.Deadline(e.row(t, key)))
	}
	id = fmt.Sprintf("e%d", e.off+1)
	d.MaybeScanArgs(t, "id", &id)
	data, err := codecs.NewData(d.Cmd)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	if d.Input != "" {
		if err := protojson.Unmarshal([]byte(d.Input), data); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	var out []string
	for _, m := range e.send(t, key, id, d.Cmd, data) {
		out = append(out, line(m))
	}
	return strings.Join(append(out, e.row(t, key).String()), "\n")
}
