package table_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// foreign is a client in another language: it has a Kafka client, an HTTP client and a JSON library, and knows the wire
// from its documentation only. It uses nothing of this module. Its producer places keys as every Java client does.
type foreign struct {
	t      *testing.T
	kafka  *kgo.Client
	topic  string
	number int
}

func (f *foreign) send(batch, kind string, data map[string]any) {
	f.t.Helper()
	value, err := json.Marshal(data)
	require.NoError(f.t, err)
	f.number++
	r := &kgo.Record{Topic: f.topic, Key: []byte(batch), Value: value, Headers: []kgo.RecordHeader{
		{Key: "ce_specversion", Value: []byte("1.0")},
		{Key: "ce_id", Value: fmt.Appendf(nil, "foreign-%d", f.number)},
		{Key: "ce_source", Value: []byte("/foreign/service")},
		{Key: "ce_type", Value: []byte("quiesce." + kind + ".v1")},
		{Key: "content-type", Value: []byte("application/json")},
	}}
	require.NoError(f.t, f.kafka.ProduceSync(context.Background(), r).FirstErr())
}

func (f *foreign) get(url string) (doc map[string]any) {
	f.t.Helper()
	resp, err := http.Get(url)
	require.NoError(f.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	require.NoError(f.t, json.Unmarshal(b, &doc))
	return doc
}

func TestForeignClientSpeaksJSONRecordsOnly(t *testing.T) {
	d := deploy(t)
	defer http.DefaultClient.CloseIdleConnections()
	f := &foreign{t: t, topic: d.prefix + ".control", kafka: brokertest.Client(t, d.bootstrap)}

	f.send("night-1", "batch.start", map[string]any{"run": "r1", "labels": map[string]string{"from": "python"}})
	f.send("night-1", "batch.report", map[string]any{"run": "r1", "reporter": "worker-1",
		"items": []map[string]any{{"first": 0, "last": 4, "outcome": "ok"}}}) // before the seal
	f.send("night-1", "batch.seal", map[string]any{"run": "r1", "total": 7})
	f.send("night-1", "batch.report", map[string]any{"run": "r1", "reporter": "worker-2",
		"items": []map[string]any{{"first": 6, "outcome": "failed", "reason": "bad date"}}})
	f.send("night-1", "batch.report", map[string]any{"run": "r1", "items": []map[string]any{{"first": 5, "outcome": "ok"}}})

	url := d.node.Address() + "/v1/batches/night-1"
	var doc map[string]any
	require.Eventually(t, func() bool { doc = f.get(url); return doc["terminal"] == true }, waitLong, tick)
	require.Equal(t, "completed_with_failures", doc["state"])
	counts := doc["counts"].(map[string]any)
	require.Equal(t, []any{7.0, 6.0, 1.0}, []any{counts["total"], counts["ok"], counts["failed"]})
	require.Equal(t, "python", doc["labels"].(map[string]any)["from"])

	// The result is also an event: read it as a foreign consumer would, by its headers.
	events := brokertest.Client(t, d.bootstrap, kgo.ConsumeTopics(d.prefix+".events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	terminal := 0
	for terminal == 0 {
		fetches := events.PollFetches(d.ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			for _, h := range r.Headers {
				if h.Key == "ce_type" && string(h.Value) == "quiesce.batch.completed-with-failures.v1" {
					require.Equal(t, "night-1", string(r.Key))
					terminal++
				}
			}
		})
	}
	require.Equal(t, 1, terminal)
	require.Eventually(t, func() bool {
		tasks, _ := f.get(url + "/tasks?outcome=failed")["tasks"].([]any)
		return len(tasks) == 1 && tasks[0].(map[string]any)["reason"] == "bad date"
	}, waitLong, tick)
}
