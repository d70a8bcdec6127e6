package demo

import (
	"fmt"
	"reflect"
)

// Differences says in words where two results disagree; nothing when they agree.
func (x *Index) Differences(want *Index) []string {
	var out []string
	number := func(what string, got, want int) {
		if got != want {
			out = append(out, fmt.Sprintf("%s: %d, the plain loop has %d", what, got, want))
		}
	}
	number("files", x.Files, want.Files)
	number("parsed files", x.Parsed, want.Parsed)
	number("declarations", x.Declarations, want.Declarations)
	number("distinct contents", x.Digests, want.Digests)
	if !reflect.DeepEqual(x.Duplicates, want.Duplicates) {
		out = append(out, fmt.Sprintf("duplicates: %d groups that differ from the plain loop's %d", len(x.Duplicates), len(want.Duplicates)))
	}
	return append(out, failureDifferences(x.Failures, want.Failures)...)
}

func failureDifferences(got, want []Failure) []string {
	var out []string
	expected := map[string]Failure{}
	for _, f := range want {
		expected[f.Path] = f
	}
	for _, f := range got {
		w, ok := expected[f.Path]
		delete(expected, f.Path)
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("%s failed in %s (%s), not in the plain loop", f.Path, f.Stage, f.Reason))
		case w != f:
			out = append(out, fmt.Sprintf("%s failed in %s (%s), in the plain loop in %s (%s)", f.Path, f.Stage, f.Reason, w.Stage, w.Reason))
		}
	}
	for _, f := range want {
		if _, missing := expected[f.Path]; missing {
			out = append(out, fmt.Sprintf("%s failed in the plain loop (%s: %s), not here", f.Path, f.Stage, f.Reason))
		}
	}
	return out
}
