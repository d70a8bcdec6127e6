package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// maxListed bounds the failures and duplicates that are printed.
const maxListed = 20

// order in which the stages are shown.
var order = []string{StageRead, StageParse, StageDigest, StageReport}

// Print says in words what came out.
func (r *Result) Print(w io.Writer) {
	x := r.Index
	fmt.Fprintf(w, "\n%s: %s: %d tasks, %d failed\n", r.Batch, r.State, x.Files, len(x.Failures))
	if x.Files == 0 {
		fmt.Fprintf(w, "there is no .go file in %s: a batch without tasks completes at once\n", r.Input)
	}
	for _, name := range order {
		fmt.Fprintf(w, "  %-7s %6d records\n", name, r.Stages[name])
	}
	fmt.Fprintf(w, "index: %d files parsed, %d declarations, %d distinct contents\n", x.Parsed, x.Declarations, x.Digests)
	for i, f := range x.Failures {
		if i == maxListed {
			fmt.Fprintf(w, "  ... and %d more\n", len(x.Failures)-i)
			break
		}
		reason := f.Reason
		if !strings.HasPrefix(reason, f.Path) {
			reason = f.Path + ": " + reason
		}
		fmt.Fprintf(w, "  failed in %s: %s\n", f.Stage, reason)
	}
	r.printDuplicates(w)
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "folder not listed: %s: %s\n", s.Path, s.Reason)
	}
	fmt.Fprintf(w, "took %s; completion event %s after the last task ended\n", r.Wall.Round(time.Millisecond), r.Delay.Round(10*time.Microsecond))
	if len(r.Differences) == 0 {
		fmt.Fprintln(w, "check: counts, duplicates and failures equal those of a plain loop over the same folder")
		return
	}
	fmt.Fprintln(w, "check FAILED: this differs from a plain loop over the same folder:")
	for _, d := range r.Differences {
		fmt.Fprintln(w, "  "+d)
	}
}

func (r *Result) printDuplicates(w io.Writer) {
	more := 0
	for _, group := range r.Index.Duplicates {
		more += len(group) - 1
	}
	fmt.Fprintf(w, "duplicates by digest: %d files in %d groups", more, len(r.Index.Duplicates))
	if len(r.Index.Duplicates) > 0 {
		g := r.Index.Duplicates[0]
		fmt.Fprintf(w, ", for example %s = %s", g[0], g[1])
	}
	fmt.Fprintln(w)
}
