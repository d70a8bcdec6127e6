package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// glanced requires that a glance at a row's bytes agrees with the decoded row, and returns what it says.
func glanced(t testing.TB, m *Machine, b []byte) bool {
	t.Helper()
	deadline, settled := m.Glance(b)
	if !settled {
		return false
	}
	row, err := m.LoadRow("b", b)
	if err != nil {
		return true
	}
	_, status := m.Status(row, false)
	_, self := m.Collect(row)
	require.Equal(t, m.Deadline(row), deadline, "%s", row)
	require.False(t, status, "%s", row)
	require.False(t, self, "%s", row)
	return true
}

// TestGlanceRecognizesMarkers follows a batch through its life, to the end of its marker, and into a second one.
func TestGlanceRecognizesMarkers(t *testing.T) {
	e := newEnv(t, mutants{})
	settled := func() bool { return glanced(t, e.m, e.rows[e.batch].bytes) }
	e.report(codecs.NewItem(0, 1, codecs.OK))
	require.False(t, settled(), "reports wait for their START")
	e.start(&codecs.BatchStart{Retention: 1000})
	require.False(t, settled())
	e.seal(70_000)
	e.round(1, 0, 69_999, codecs.OK)
	require.False(t, settled(), "it may be driven again")
	e.now += 1000
	require.Equal(t, codecs.State_collected, e.nudge().run.State)
	require.True(t, settled())
	marker := e.rows[e.batch].bytes

	e.step(codecs.TypeBatchReport, &codecs.BatchReport{Run: "s", Items: []*codecs.ReportItem{{Outcome: codecs.OK}}})
	require.False(t, settled(), "reports of the next run")
	e.step(codecs.TypeBatchStart, &codecs.BatchStart{Run: "s", MaxTotal: 10})
	require.False(t, settled())

	old := e.m.cfg
	e.m.cfg.MarkerTTL = 1
	e.rows[e.batch] = stored{applied: e.applied(e.batch), bytes: marker}
	e.now += 10
	e.nudge()
	require.False(t, settled(), "the marker has stood for long enough")
	e.m.cfg = old

	var newer codecs.BatchRow
	require.NoError(t, proto.Unmarshal(marker, &newer))
	newer.Format = rowFormat + 1
	b, err := proto.Marshal(&newer)
	require.NoError(t, err)
	require.False(t, glanced(t, e.m, b), "of a newer release")
	require.False(t, glanced(t, e.m, marker[:len(marker)-1]))
}
