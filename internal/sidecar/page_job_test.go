package sidecar_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/chromedp/chromedp"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
	"github.com/quiesce/quiesce/processors/job"
)

func TestPageShowsJobsAndFollowsThem(t *testing.T) {
	s, url := serveJobs(t)
	s.fill()
	s.count()
	b := open(t, url, 1440, 1000)
	b.holds(text("#live") + ` === "live"`)
	b.click(`#views [data-view="jobs"]`)
	b.holds(`document.querySelectorAll(".batch").length === 4`)
	require.Equal(t, "Jobs", b.eval(text("#list-title")))
	b.holds(text(`[data-key="letters-0417"]`) + `.includes("waits for batch nightly-invoices, go-index")`)
	b.holds(text(`[data-key="thumbnails-spring"] .chip`) + `.includes("paused")`)
	b.holds(text("#stats") + `.includes("invoices")`)
	b.shot("jobs")

	// One job: its steps, what failed, its input.
	b.click(`[data-key="invoices-2026-11"]`)
	b.holds(text("#job-title") + ` === "invoices-2026-11"`)
	b.holds(text("#why li") + `.includes("step render: 6,341 of 10,000 tasks")`)
	b.holds(`document.querySelectorAll("#steps tbody tr").length === 5 && document.querySelectorAll(".flow li").length === 4`)
	b.holds(text("#failed") + `.includes("no such customer")`)
	b.shot("job")
	b.click("#theme")
	b.holds(`document.documentElement.dataset.theme === "dark"`)
	b.shot("job-dark")
	b.click("#theme")
	b.click(`summary`)
	b.holds(text("pre") + `.includes("orders-2026-11.csv")`)

	// Live: without a reload, and only by what the stream says. What was opened stays open.
	s.report("invoices-2026-11.render", 6_341, 9_999, codecs.OK, "")
	b.holds(text(`[data-key="invoices-2026-11"]`) + `.includes("2 / 5 steps")`)
	b.holds(`[...document.querySelectorAll("#why li")].some((e) => e.innerText.includes("step archive: its task is in queue invoices.archive"))`)
	b.holds(text("pre") + `.includes("orders-2026-11.csv")`)
	for _, step := range []string{"archive", "report", "notify"} {
		s.task("invoices-2026-11", step, codecs.OK, "")
	}
	b.holds(`!document.querySelector('[data-key="invoices-2026-11"]')`) // ended: no longer among the open ones
	b.holds(text("#detail .chip") + ` === "completed with failures"`)
	s.request("fresh", "letters", &codecs.JobRequested{}, "only")
	b.holds(`!!document.querySelector('[data-key="fresh"]')`)
	b.click(`[data-state="ended"]`)
	b.holds(text(`[data-key="export-emea"]`) + `.includes("relation orders_2019 does not exist")`)
	b.shot("jobs-ended")

	// From the job to its batch, and back.
	b.click(`[data-key="invoices-2026-10"]`)
	b.holds(text("#job-title") + ` === "invoices-2026-10"`)
	b.click(`#steps a`)
	b.holds(text("#batch-title") + ` === "invoices-2026-10.render"`)
	b.holds(text("#list-title") + ` === "Batches"`)
	b.click(`.facts a`)
	b.holds(text("#job-title") + ` === "invoices-2026-10"`)
	b.quiet()
}

func TestPageOfTenThousandJobs(t *testing.T) {
	s, url := serveJobs(t)
	for i := range 10_000 {
		s.request(fmt.Sprintf("j-%05d", i), "letters", &codecs.JobRequested{}, "only")
	}
	b := open(t, url+"/#/jobs", 1440, 900)
	b.holds(`document.querySelectorAll(".batch").length === 50`)
	b.click("#next")
	b.holds(text(".batch .id") + ` === "j-00050"`)
	b.click("#prev")
	b.holds(text(".batch .id") + ` === "j-00000"`)
	b.run(chromedp.SendKeys(chromedp.CSS("#jump-id"), "j-09999\r"))
	b.holds(text("#job-title") + ` === "j-09999"`)
	b.quiet()
}

func TestPageOfJobsKeptApartByCustomer(t *testing.T) {
	var s sampleJobs
	_, srv := serve(t, func(c *sidecar.Config) {
		s = sampleJobs{t: t, d: c.Batches.(*sidecartest.Deployment)}
		s.w = sidecartest.NewWorkflow(s.d, job.Config{MaxPerCust: 1})
		c.Jobs, c.JobLog, c.CustomerKeys = s.w, s.w, true
	})
	for _, c := range []string{"acme", "zeta"} {
		for _, id := range []string{"j-1", "j-2"} {
			s.request(c+"\x00"+id, "letters", &codecs.JobRequested{Customer: c}, "only")
		}
	}
	b := open(t, srv.URL+"/#/jobs", 1440, 900)
	b.holds(`document.querySelectorAll(".batch").length === 4`)
	b.click(`[data-key="zeta/j-2"]`)
	b.holds(text("#why li") + `.includes("waits for a slot")`)
	b.run(chromedp.SendKeys(chromedp.CSS("#jump-id"), "acme/j-1\r"))
	b.holds(text("#why li") + `.includes("step only: its task is in queue letters.only")`)
	b.quiet()
}

func TestPageNeverReadsJobsAsMarkup(t *testing.T) {
	s, url := serveJobs(t)
	evil := `<img src=x onerror="document.title='taken'">`
	s.request("j-1", "letters", &codecs.JobRequested{Labels: map[string]string{evil: evil}, Input: &codecs.Payload{Data: []byte(evil)}}, "only")
	s.task("j-1", "only", codecs.Failed, evil)
	b := open(t, url+"/#/job/j-1", 1200, 800)
	b.holds(text("#why") + `.includes("<img src=x")`)
	require.Equal(t, "0", b.eval(`document.querySelectorAll("#detail img").length`))
	require.Equal(t, "j-1 · Quiesce", b.eval("document.title"))
}

func TestPageOfJobsOnAPhoneByKeyboardAndLegible(t *testing.T) {
	s, url := serveJobs(t)
	s.fill()
	b := open(t, url+"/#/job/invoices-2026-11", 420, 900)
	b.holds(`document.querySelectorAll(".batch").length === 4 && !!document.querySelector("#steps")`)
	require.Empty(t, b.eval(`[...document.querySelectorAll("body *")].filter((e) => !e.closest(".scroll") && e.getBoundingClientRect().right > innerWidth + 1)
		.map((e) => e.tagName + "." + e.className + "#" + e.id).join(" ")`), "nothing sticks out to the side")
	b.shot("job-phone")
	unnamed := b.eval(`[...document.querySelectorAll("button, a, input, summary, [role=img]")].filter((e) =>
		!(e.innerText || e.getAttribute("aria-label") || e.labels?.length)).map((e) => e.outerHTML).join("\n")`)
	require.Empty(t, unnamed)
	require.Equal(t, "true", b.eval(`[...document.querySelectorAll(".batch, #views a, summary, .flow")].every((e) => e.tabIndex === 0)`))
	script, err := os.ReadFile(filepath.Join("testdata", "contrast.js"))
	require.NoError(t, err)
	for _, theme := range []string{"light", "dark"} {
		poor := b.eval(fmt.Sprintf("(document.documentElement.dataset.theme = %q, %s)", theme, strings.TrimSpace(string(script))))
		require.Empty(t, poor, theme)
	}
}

// A sidecar without jobs says so, once, instead of asking again and again.
func TestPageWithoutJobs(t *testing.T) {
	_, srv := serve(t)
	b := open(t, srv.URL+"/#/jobs", 1200, 800)
	b.holds(text("#notice") + ` === "No table of jobs is configured"`)
	b.quiet()
}
