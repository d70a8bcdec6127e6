package processors

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// A row that its topic does not take is the record's failure, not the processor's.
func TestGokaStageRowThatIsTooLargeFailsTheTask(t *testing.T) {
	w := gokaSetup(t, gokaDiamond)
	w.plain("parse")
	w.plain("digest")
	cb := fold(w)
	w.group(w.report(func(ctx Context, v any) {
		if i, _ := strconv.Atoi(v.(string)); i%10 == 3 && strings.HasSuffix(string(ctx.Topic()), "asts") {
			ctx.SetValue(strings.Repeat("x", 2_000_000))
			return
		}
		cb(ctx, v)
	}))
	w.feed("b-1", "ledger", 50)
	name, data := w.outcome("b-1")
	require.Equal(t, codecs.TypeBatchCompletedWithFailures, name)
	require.EqualValues(t, 5, data.Counts.Failed)
	rows := w.rows()
	require.Equal(t, "digests=3", rows["k3"])
	require.Equal(t, "asts=4,digests=4", rows["k4"])
}
