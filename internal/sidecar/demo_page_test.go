package sidecar_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/demo"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// The dashboard follows the demo's batch while it runs, and shows what HTTP says and the demo prints when it has ended.
func TestDashboardAgreesWithTheDemo(t *testing.T) {
	source, err := demo.GoSource()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var b *browser
	_, err = demo.Run(ctx, demo.Config{Input: source, Keep: true,
		Watch: func(p demo.Progress) {
			if b == nil && p.Sidecar != "" {
				b = open(t, p.Sidecar, 1440, 1000)
				b.holds(text("#live") + ` === "live"`) // nothing is fed before that
				b.run(evaluate(`window.seen = []; new MutationObserver(() => {
					const text = document.querySelector('[data-key="go-index"]')?.innerText;
					if (text) seen.push(text);
				}).observe(document.getElementById("batches"), { childList: true, subtree: true })`))
			}
		},
		Done: func(res *demo.Result) {
			defer cancel()
			require.NotNil(t, b)
			c, err := client.New(client.Config{Address: b.eval("location.origin")})
			require.NoError(t, err)
			got, err := c.Get(ctx, res.Batch)
			require.NoError(t, err)
			require.Equal(t, res.State, got.State)
			require.EqualValues(t, len(res.Index.Failures), got.Counts.Failed)
			t.Logf("the page showed it running as:\n%s", b.eval(`seen.join("\n--\n")`))
			b.holds("seen.length > 0")

			b.click(`[data-state="ended"]`)
			b.click(fmt.Sprintf(`[data-key=%q]`, res.Batch))
			b.holds(text("#batch-title") + fmt.Sprintf(" === %q", res.Batch))
			b.holds(text("#detail .chip") + fmt.Sprintf(" === %q", strings.ReplaceAll(res.State, "_", " ")))
			b.holds(text("#detail .big") + fmt.Sprintf(`.includes("of " + Number(%d).toLocaleString("en") + " tasks")`, got.Counts.Total))
			for _, f := range res.Index.Failures {
				b.holds(text("#failed") + fmt.Sprintf(".includes(%q)", f.Reason))
			}
			b.shot("demo")
			b.quiet()
		}})
	require.True(t, err == nil || ctx.Err() != nil, "%v", err)
}
