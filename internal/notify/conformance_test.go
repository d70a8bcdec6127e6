package notify

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	machine "github.com/quiesce/quiesce/processors/notify"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/topology"
)

// TestConformance holds the entries about deliveries.
func TestConformance(t *testing.T) {
	t.Run("C48", sentAgainUnderOneID)
}

// sentAgainUnderOneID: a notifier asks for a delivery and loses its partition before it has committed: the next one asks
// again. A deliverer sends it and dies before the task is done: the next one sends it again. All of it has one id, in the
// queue and at the receiver, who can tell by it.
func sentAgainUnderOneID(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("webhook-id"))
	}))
	t.Cleanup(srv.Close)
	post, addr := mailServer(t)
	cfg := Config{AllowPrivate: true, SMTP: SMTP{Addr: addr, From: "quiesce@example.com", Plain: true}}
	for _, url := range []string{srv.URL, "mailto:ops@example.com"} {
		m := queue.NewMemory()
		var asked []*codecs.Task
		for range 2 { // two owners of the notifier, each from the row as it was before the event
			asked = append(asked, task(t, machine.Subscription{Event: "batch.*", URL: url}))
		}
		require.Equal(t, asked[0].Id, asked[1].Id)
		require.NoError(t, m.Enqueue(t.Context(), topology.NotifyQueue, 0, asked...))
		deliver := func(end func(*queue.MemoryConsumer, []*queue.Delivery)) {
			c := m.Consumer(topology.NotifyQueue)
			ds, err := c.Receive(t.Context(), 2)
			require.NoError(t, err)
			require.Len(t, ds, 2)
			d := deliverer(t, cfg) // a process of its own remembers nothing
			for _, one := range ds {
				require.NoError(t, d.Deliver(context.Background(), one.Task))
			}
			end(c, ds)
		}
		deliver(func(c *queue.MemoryConsumer, _ []*queue.Delivery) { c.Crash() })
		deliver(func(c *queue.MemoryConsumer, ds []*queue.Delivery) {
			for _, d := range ds {
				d.Done()
			}
			require.NoError(t, c.Close())
		})
		require.Zero(t, m.Len(topology.NotifyQueue))
	}
	require.Equal(t, []string{"b-1/r/1/terminal", "b-1/r/1/terminal", "b-1/r/1/terminal", "b-1/r/1/terminal"}, got)
	ids := map[string]int{}
	for _, l := range post.mails {
		m, err := mail.ReadMessage(strings.NewReader(l.text))
		require.NoError(t, err)
		ids[m.Header.Get("Message-Id")]++
	}
	require.Len(t, ids, 1)
	require.Len(t, post.mails, 4)
}
