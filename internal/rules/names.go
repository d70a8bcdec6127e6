package rules

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// vague are folder names that say nothing about their content.
var vague = []string{
	"util", "utils", "common", "pkg", "helper", "helpers", "misc", "shared", "base", "lib", "tools", "core", "types", "impl",
}

var packageNames = Rule{
	Name: "a package is named for its concept",
	Why:  "the folder list must read as an index",
	Check: func(f *File) []Fault {
		for _, name := range append(strings.Split(f.Dir(), "/"), f.Package()) {
			if slices.Contains(vague, name) || strings.HasSuffix(name, "util") || strings.HasSuffix(name, "utils") {
				return []Fault{f.fault(f.ast.Name, "folder or package %q: name it for what it provides", name)}
			}
		}
		return nil
	},
}

// unfinishedMark is written in pieces so that this file does not breach its own rule.
var unfinishedMark = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}, "|") + `)\b`)

var unfinished = Rule{
	Name: "nothing is marked unfinished",
	Why:  "what is not done is written where a user sees it: in the README or an issue",
	Check: func(f *File) (faults []Fault) {
		for _, g := range f.ast.Comments {
			for _, c := range g.List {
				if m := unfinishedMark.FindString(c.Text); m != "" {
					faults = append(faults, f.fault(c, "%s: do it, or say in the documentation what is missing", m))
				}
			}
		}
		return faults
	},
}

// machinePath matches folders of somebody's machine, in any file. It is written in pieces, as above.
var machinePath = regexp.MustCompile(`/(?:wo` + `rk|ro` + `ot|ho` + `me/[a-z]+|Us` + `ers/[a-z]+)/`)

// MachinePaths returns the places of a text (any file but binaries) that name a folder of somebody's machine.
func MachinePaths(name string, text []byte) (faults []Fault) {
	if bytes.IndexByte(text, 0) >= 0 || path.Base(name) == "go.sum" {
		return nil
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if m := machinePath.Find(line); m != nil {
			faults = append(faults, Fault{Path: name, Line: i + 1, Say: fmt.Sprintf("%q is a folder of one machine: use a relative path, a flag or an environment variable", m)})
		}
	}
	return faults
}
