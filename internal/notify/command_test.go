package notify

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	machine "github.com/quiesce/quiesce/processors/notify"
)

func TestCommand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	d := deliverer(t, Config{Timeout: 5 * time.Second, Commands: map[string][]string{
		"save": {"sh", "-c", `cat > "$0"; echo "$QUIESCE_EVENT_TYPE $QUIESCE_EVENT_ID" >> "$0"`, out},
		"fail": {"sh", "-c", "echo why >&2; exit 1"}, "no": {"sh", "-c", "exit 20"}, "gone": {"/does/not/exist"},
	}})
	run := func(name string) error {
		return d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: "exec:" + name}))
	}
	require.NoError(t, run("save"))
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	var n machine.Delivery
	dec, rest, ok := cut(string(b))
	require.True(t, ok)
	require.NoError(t, json.Unmarshal([]byte(dec), &n))
	require.Equal(t, "b-1/r/1/terminal", n.ID)
	require.Equal(t, "batch.failed b-1/r/1/terminal\n", rest)

	require.ErrorContains(t, run("fail"), "why")
	require.Equal(t, "later", verdict(run("fail")))
	require.Equal(t, "never", verdict(run("no")))
	require.Equal(t, "later", verdict(run("gone")))
	require.ErrorContains(t, run("rm"), "not enabled here")
	require.Equal(t, "never", verdict(run("rm")))
}

// cut splits after the JSON document.
func cut(s string) (doc, rest string, ok bool) {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == '}' {
			return s[:i+1], s[i+1:], true
		}
	}
	return "", "", false
}

// The child of the command holds its output open: only the end of the whole process group ends the attempt in time.
func TestCommandTimeOut(t *testing.T) {
	d := deliverer(t, Config{Timeout: 100 * time.Millisecond, Commands: map[string][]string{"hang": {"sh", "-c", "sleep 600 & wait"}}})
	start := time.Now()
	err := d.Deliver(context.Background(), task(t, machine.Subscription{Event: "*", URL: "exec:hang"}))
	require.Equal(t, "later", verdict(err))
	require.Less(t, time.Since(start), 900*time.Millisecond, "before the output would be given up")
}
