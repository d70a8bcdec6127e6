package notify

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/codecs"
	machine "github.com/quiesce/quiesce/processors/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Unix(1_700_000_000, 0)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func deliverer(t *testing.T, cfg Config) *Deliverer {
	t.Helper()
	cfg.Now = func() time.Time { return now }
	d, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// task is the delivery of one event to a URL, as the notifier asks for it.
func task(t *testing.T, s machine.Subscription) *codecs.Task {
	t.Helper()
	m, err := machine.New(machine.Config{Subscriptions: []machine.Subscription{s}})
	require.NoError(t, err)
	rec, err := codecs.Encode("quiesce.events", "b-1", "/t", &codecs.Event{Type: codecs.TypeBatchFailed, ID: "b-1/r/1/terminal",
		Data: &codecs.BatchEvent{Run: "r", State: codecs.State_failed, Reason: "2 of 3 failed", Counts: &codecs.Counts{Total: 3, Failed: 2}}})
	require.NoError(t, err)
	rec.Partition, rec.Time = 0, 1_700_000_000_123
	var ev codecs.Event
	require.NoError(t, m.Decode(&rec, &ev))
	out := m.Step(m.NewRow(ev.Key), nil, 1, &ev, nil)
	require.Len(t, out, 1)
	return out[0].Data.(*codecs.Task)
}

// with changes the delivery in a task.
func with(t *testing.T, task *codecs.Task, change func(*machine.Delivery)) *codecs.Task {
	t.Helper()
	d, err := machine.ReadDelivery(task)
	require.NoError(t, err)
	change(d)
	task.Payload.Data, err = json.Marshal(d)
	require.NoError(t, err)
	return task
}
