package topology

import (
	"fmt"
	"sort"
	"strings"
)

// Fault is one thing that is wrong with a declaration.
type Fault struct {
	Path string // where, for example stages.parse.in[0]
	Line int    // in the file it was read from, from 1; 0 = unknown
	Text string
}

// String is one line: "line 7: stages.parse.in[0]: topic "pahts" is not declared".
func (f Fault) String() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	return b.String() + f.Text
}

// Faults is everything that is wrong with a declaration, found at once.
type Faults []Fault

// Error has one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

func (f *Faults) add(path, format string, args ...any) {
	*f = append(*f, Fault{Path: path, Text: fmt.Sprintf(format, args...)})
}

// err returns the faults as an error, nil if there are none.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// locate fills in the lines of paths: the path's own line or that of the nearest enclosing path, and orders by line.
func (f Faults) locate(lines map[string]int) {
	for i := range f {
		for p := f[i].Path; f[i].Line == 0 && p != ""; {
			if l, ok := lines[p]; ok {
				f[i].Line = l
			}
			p = p[:max(strings.LastIndexAny(p, ".["), 0)]
		}
	}
	sort.SliceStable(f, func(i, j int) bool { return f[i].Line < f[j].Line })
}
