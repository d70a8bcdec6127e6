package demo

import (
	"slices"
	"sort"
)

// maxPaths bounds the set of paths that share one digest: the smallest ones are kept, whatever the order of arrival.
const maxPaths = 1000

// Entry is a row of the report: either what parse found in a path, or the paths that have one digest.
type Entry struct {
	Decls *Decls   `json:"decls,omitempty"`
	Paths []string `json:"paths,omitempty"` // sorted
}

// AddPath puts a path into the set. Adding it again changes nothing.
func (e *Entry) AddPath(path string) {
	i, found := slices.BinarySearch(e.Paths, path)
	if found || i >= maxPaths {
		return
	}
	e.Paths = slices.Insert(e.Paths, i, path)
	if len(e.Paths) > maxPaths {
		e.Paths = e.Paths[:maxPaths]
	}
}

// Failure is a file that did not go through, and why.
type Failure struct {
	Path   string `json:"path"`
	Stage  string `json:"stage"`
	Reason string `json:"reason"`
}

// Index is the result of the job.
type Index struct {
	Files        int        `json:"files"`
	Parsed       int        `json:"parsed"`
	Declarations int        `json:"declarations"`
	Digests      int        `json:"digests"`    // distinct contents
	Duplicates   [][]string `json:"duplicates"` // groups of two or more paths with the same contents, sorted
	Failures     []Failure  `json:"failures"`   // sorted by path
}

// newIndex folds the rows of a report.
func newIndex(files int, rows map[string]*Entry, failures []Failure) *Index {
	x := &Index{Files: files, Failures: failures, Duplicates: [][]string{}}
	if failures == nil {
		x.Failures = []Failure{}
	}
	for _, e := range rows {
		if e.Decls != nil {
			x.Parsed++
			x.Declarations += e.Decls.Total()
		}
		if len(e.Paths) > 0 {
			x.Digests++
		}
		if len(e.Paths) > 1 {
			x.Duplicates = append(x.Duplicates, e.Paths)
		}
	}
	sort.Slice(x.Duplicates, func(i, j int) bool { return x.Duplicates[i][0] < x.Duplicates[j][0] })
	sort.Slice(x.Failures, func(i, j int) bool { return x.Failures[i].Path < x.Failures[j].Path })
	return x
}
