package sidecar_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/sidecartest"
)

// browser opens a page in headless Chromium. Screenshots go to $QUIESCE_TEST_ARTEFACTS, else to the test's folder.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string // exceptions of the page
}

func open(t *testing.T, url string, width, height int64) *browser {
	t.Helper()
	path := findBrowser()
	if path == "" {
		if os.Getenv("CI") == "true" {
			require.Fail(t, "no Chromium in CI: install one, or set QUIESCE_TEST_BROWSER")
		}
		t.Skip("needs Chromium in PATH: make test where it is installed")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(int(width), int(height)), chromedp.UserDataDir(t.TempDir()))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{t: t}
	require.NoError(t, chromedp.Listen(ctx, func(ev any) {
		if name := fmt.Sprintf("%T", ev); strings.Contains(name, "ExceptionThrown") {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.errors = append(b.errors, fmt.Sprintf("%+v", ev))
		}
	}))
	b.ctx, cancel = context.WithTimeout(ctx, 3*time.Minute) // each wait has its own, shorter limit
	t.Cleanup(cancel)
	b.run(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	return b
}

// quiet fails when the page threw an exception.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.errors)
}

func (b *browser) click(selector string) { b.t.Helper(); b.run(chromedp.Click(chromedp.CSS(selector))) }

func findBrowser() string {
	names := []string{os.Getenv("QUIESCE_TEST_BROWSER"), "chromium", "chromium-browser", "google-chrome", "chrome"}
	for _, n := range names {
		if p, err := exec.LookPath(n); n != "" && err == nil {
			return p
		}
	}
	return ""
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// holds waits until a JavaScript expression is true.
func (b *browser) holds(expr string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expr, chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		require.NoError(b.t, err, "never true: %s\nthe page says:\n%s\nerrors: %v", expr, text, b.errors)
	}
}

func (b *browser) eval(expr string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expr+")"))
	require.NoError(b.t, err)
	return text
}

// shot keeps a screenshot as an artefact.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("QUIESCE_TEST_ARTEFACTS")
	if dir == "" {
		dir = b.t.ArtifactDir()
	}
	require.NoError(b.t, os.MkdirAll(dir, 0o755))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	path := filepath.Join(dir, name+".png")
	require.NoError(b.t, os.WriteFile(path, png, 0o600))
	b.t.Logf("screenshot: %s", path)
}

// text of the first element of a selector.
func text(selector string) string {
	return fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '')", selector)
}

func serve(t *testing.T, edit ...func(*sidecar.Config)) (*sidecartest.Deployment, *httptest.Server) {
	t.Helper()
	d := sidecartest.New()
	cfg := sidecar.Config{Sources: sidecar.Sources{Batches: d, Log: d, Events: d, Groups: sampleGroups{}},
		Topologies: sampleTopologies(t), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, e := range edit {
		e(&cfg)
	}
	s, err := sidecar.New(cfg)
	require.NoError(t, err)
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close) // after the browser is gone
	return d, srv
}

func TestPageShowsBatchesAndFollowsThem(t *testing.T) {
	d, srv := serve(t)
	sampleBatches(d)
	b := open(t, srv.URL, 1440, 900)
	b.holds(`document.querySelectorAll(".batch").length === 6`)
	b.holds(text("#live") + ` === "live"`)
	require.Equal(t, "true", b.eval(`document.querySelector('[data-key="nightly-invoices"] .bar').getAttribute("aria-label").includes("12 failed")`))
	b.shot("list")

	// One batch: explain and missing.
	b.click(`[data-key="go-index"]`)
	b.holds(text("#why li") + `.includes("stage parse, topic paths, partition 2, group go-index.parse: lag 312")`)
	b.holds(`document.querySelectorAll("#stages tbody tr").length === 4`)
	b.holds(text("#missing") + `.includes("parse / paths / 2")`)
	b.shot("batch")
	b.click("#theme")
	b.holds(`document.documentElement.dataset.theme === "dark"`)
	b.shot("batch-dark")
	b.click("#theme")

	b.click(`[data-key="nightly-invoices"]`)
	b.holds(text("#missing") + `.includes("417–419")`)
	b.holds(text("#failed") + `.includes("no such customer")`)

	// Live: without a reload, and only by what the stream says.
	_, err := d.Append(context.Background(), "fresh", &codecs.Event{Type: codecs.TypeBatchStart, Data: &codecs.BatchStart{Run: "r"}})
	require.NoError(t, err)
	b.holds(`!!document.querySelector('[data-key="fresh"]')`)
	_, err = d.Append(context.Background(), "fresh", &codecs.Event{Type: codecs.TypeBatchSeal, Data: &codecs.BatchSeal{Run: "r"}})
	require.NoError(t, err)
	b.holds(`!document.querySelector('[data-key="fresh"]')`) // ended: no longer among the open ones
	b.click(`[data-state="ended"]`)
	b.holds(text(`[data-key="fresh"]`) + `.includes("completed")`)
	b.quiet()
}

func TestPageOfTenThousandBatches(t *testing.T) {
	d, srv := serve(t)
	for i := range 10_000 {
		d.Put(api.Batch{Batch: fmt.Sprintf("b-%05d", i), State: "sealed", Counts: api.Counts{Total: 10, OK: 5, Pending: 5}})
	}
	b := open(t, srv.URL, 1440, 900)
	b.holds(`document.querySelectorAll(".batch").length === 50`)
	b.click("#next")
	b.holds(text(".batch .id") + ` === "b-00050"`)
	b.click("#next")
	b.holds(text(".batch .id") + ` === "b-00100"`)
	b.click("#prev")
	b.holds(text(".batch .id") + ` === "b-00050"`)
	b.run(chromedp.SendKeys(chromedp.CSS("#jump-id"), "b-09999\r"))
	b.holds(text("#batch-title") + ` === "b-09999"`)
	b.quiet()
}

func TestPageNeverReadsBatchesAsMarkup(t *testing.T) {
	d, srv := serve(t)
	evil := `<img src=x onerror="document.title='taken'">`
	d.Put(api.Batch{Batch: "b-1", State: "failed", Terminal: true, Reason: evil, Labels: map[string]string{evil: evil}})
	b := open(t, srv.URL+"/#/batch/b-1", 1200, 800)
	b.holds(text("#why") + `.includes("<img src=x")`)
	require.Equal(t, "0", b.eval(`document.querySelectorAll("#detail img").length`))
	require.Equal(t, "b-1 · Quiesce", b.eval("document.title"))
}

func TestPageWhileRecoveringAndWithToken(t *testing.T) {
	d, srv := serve(t, func(c *sidecar.Config) { c.Token = "s3cret" })
	d.Put(api.Batch{Batch: "b-1", State: "open"})
	d.Recover(sidecar.Readiness{Percent: 42})
	b := open(t, srv.URL, 1200, 800)
	b.holds(`document.getElementById("token-dialog").open`)
	b.run(chromedp.SendKeys(chromedp.CSS("#token"), "s3cret"), chromedp.Click(chromedp.CSS("#token-form button")))
	b.holds(text("#notice") + ` === "The view is loading: 42 %"`)
	d.Recover(sidecar.Readiness{Percent: 100, OK: true})
	b.holds(`document.querySelectorAll(".batch").length === 1`)
	b.holds(`document.getElementById("notice").hidden`)
}

func TestPageOnAPhoneAndByKeyboard(t *testing.T) {
	d, srv := serve(t)
	sampleBatches(d)
	b := open(t, srv.URL, 420, 900)
	b.holds(`document.querySelectorAll(".batch").length === 6`)
	require.Empty(t, b.eval(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
		.map((e) => e.tagName + "." + e.className + "#" + e.id).join(" ")`), "nothing sticks out to the side")
	b.shot("phone")
	// Everything that can be used has a name, and every batch can be reached with the tab key.
	unnamed := b.eval(`[...document.querySelectorAll("button, a, input, [role=img]")].filter((e) =>
		!(e.innerText || e.getAttribute("aria-label") || e.labels?.length)).map((e) => e.outerHTML).join("\n")`)
	require.Empty(t, unnamed)
	require.Equal(t, "true", b.eval(`[...document.querySelectorAll(".batch")].every((e) => e.tabIndex === 0)`))
	require.Equal(t, "true", b.eval("!!document.querySelector('html[lang]') && !!document.querySelector('main')"))
}

// Text must be legible in both themes: 4.5:1 against what is behind it.
func TestPageContrast(t *testing.T) {
	d, srv := serve(t)
	sampleBatches(d)
	b := open(t, srv.URL+"/#/batch/go-index", 1440, 1600)
	b.holds(`!!document.querySelector("#stages")`)
	script, err := os.ReadFile(filepath.Join("testdata", "contrast.js"))
	require.NoError(t, err)
	for _, theme := range []string{"light", "dark"} {
		poor := b.eval(fmt.Sprintf("(document.documentElement.dataset.theme = %q, %s)", theme, strings.TrimSpace(string(script))))
		require.Empty(t, poor, theme)
	}
}

// evaluate runs a script for its effect.
func evaluate(script string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[string](script+"; ''")(ctx, target)
		return chromedp.Void{}, err
	}
}
