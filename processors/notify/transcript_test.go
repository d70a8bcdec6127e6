package notify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/notify"
)

var (
	_ processors.Machine = (*notify.Machine)(nil)
	_ processors.Local   = (*notify.Machine)(nil)
)

// env runs events against the row of partition 3: encoded and loaded again after every event.
type env struct {
	m   *notify.Machine
	row []byte
	off int64
}

func newEnv(t testing.TB, cfg notify.Config) *env {
	t.Helper()
	m, err := notify.New(cfg)
	require.NoError(t, err)
	b, err := m.NewRow("3").AppendBinary(nil)
	require.NoError(t, err)
	return &env{m: m, row: b}
}

func (e *env) take(t testing.TB, key string, ev codecs.Event) ([]codecs.Message, *notify.Row) {
	t.Helper()
	e.off++
	rec, err := codecs.Encode("quiesce.events", key, "/t", &ev)
	require.NoError(t, err)
	rec.Partition, rec.Offset, rec.Time = 3, e.off, 1000*e.off
	var in codecs.Event
	require.NoError(t, e.m.Decode(&rec, &in))
	require.Equal(t, "3", in.Key)
	row, err := e.m.LoadRow(in.Key, e.row)
	require.NoError(t, err)
	out := e.m.Step(row, nil, rec.Offset, &in, nil)
	e.row, err = row.AppendBinary(nil)
	require.NoError(t, err)
	return out, row.(*notify.Row)
}

// The commands are event types with JSON data and id=; config has the subscriptions as JSON lines.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var e *env
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "config" {
				var cfg notify.Config
				for line := range strings.Lines(d.Input) {
					var s notify.Subscription
					require.NoError(t, json.Unmarshal([]byte(line), &s))
					cfg.Subscriptions = append(cfg.Subscriptions, s)
				}
				if _, err := notify.New(cfg); err != nil {
					return err.Error()
				}
				e = newEnv(t, cfg)
				return ""
			}
			data, err := codecs.NewData(d.Cmd)
			require.NoError(t, err)
			require.NoError(t, protojson.Unmarshal([]byte(d.Input), data))
			var id string
			d.MaybeScanArgs(t, "id", &id)
			out, row := e.take(t, "b-1", codecs.Event{Type: d.Cmd, ID: id, Data: data})
			var lines []string
			for _, m := range out {
				task := m.Data.(*codecs.Task)
				require.Equal(t, []string{m.ID, m.Key}, []string{task.Id, task.Id})
				lines = append(lines, fmt.Sprintf("%s %s %s %s", m.Topic, m.Key, task.Kind, task.Payload.Data))
			}
			return strings.Join(append(lines, row.String()), "\n")
		})
	})
}

func TestIdsAreTheSameAtEveryReplay(t *testing.T) {
	cfg := notify.Config{Subscriptions: []notify.Subscription{{Event: "*", URL: "https://a.example"}, {Event: "job.*", URL: "https://b.example"}}}
	ev := codecs.Event{Type: codecs.TypeJobFailed, ID: "e1", Data: &codecs.JobEvent{Type: "t"}}
	a, _ := newEnv(t, cfg).take(t, "j", ev)
	b, _ := newEnv(t, cfg).take(t, "j", ev)
	require.Len(t, a, 2)
	require.Equal(t, a[0].ID, b[0].ID)
	require.NotEqual(t, a[0].ID, a[1].ID)
	ev.ID = "e2"
	c, _ := newEnv(t, cfg).take(t, "j", ev)
	require.NotEqual(t, a[0].ID, c[0].ID)
}

func TestDeliveryRoundTrips(t *testing.T) {
	out, _ := newEnv(t, notify.Config{Subscriptions: []notify.Subscription{{Event: "*", URL: "https://a.example", Secret: "k"}}}).
		take(t, "b", codecs.Event{Type: codecs.TypeBatchFailed, ID: "e", Data: &codecs.BatchEvent{Run: "r"}})
	d, err := notify.ReadDelivery(out[0].Data.(*codecs.Task))
	require.NoError(t, err)
	require.Equal(t, "k", d.Subscription.Secret)
	require.JSONEq(t, `{"run":"r"}`, string(d.Data))
	_, err = notify.ReadDelivery(&codecs.Task{Kind: "task"})
	require.Error(t, err)
	_, err = notify.ReadDelivery(&codecs.Task{Kind: notify.KindDelivery, Payload: &codecs.Payload{Data: []byte("{")}})
	require.Error(t, err)
}

// The runtime takes at most 2 MiB of outputs for one event.
func TestDeliveriesOfOneEventAreBounded(t *testing.T) {
	var cfg notify.Config
	for i := range notify.MaxSubscriptions {
		u := fmt.Sprint("https://a.example/", i, "/")
		cfg.Subscriptions = append(cfg.Subscriptions, notify.Subscription{Event: "*", URL: u + strings.Repeat("x", 2048-len(u))})
	}
	for _, size := range []int{15 << 10, 60 << 10, 500 << 10} {
		out, row := newEnv(t, cfg).take(t, "b", codecs.Event{Type: codecs.TypeBatchFailed, ID: "e", Data: &codecs.BatchEvent{Reason: strings.Repeat("<", size)}})
		require.Len(t, out, notify.MaxSubscriptions)
		require.Equal(t, size > 16<<10, row.Cut > 0)
		n := 0
		for _, m := range out {
			n += len(m.Data.(*codecs.Task).Payload.Data) + 512
		}
		require.Less(t, n, 2<<20)
	}
	_, err := notify.New(notify.Config{Subscriptions: append(cfg.Subscriptions, cfg.Subscriptions[0])})
	require.ErrorContains(t, err, "at most 64")
}
