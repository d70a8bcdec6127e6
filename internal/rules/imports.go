package rules

import (
	"go/ast"
	"slices"
	"strings"
)

// Machines are the folders of the pure state machines.
var Machines = []string{
	"processors/batch", "processors/job", "processors/stats", "processors/notify", "processors/markers", "processors/counts",
}

// impure are the packages, and everything below them, that a machine must not see.
var impure = []string{
	"net", "os", "io/ioutil", "log", "sync", "math/rand", "crypto/rand", "runtime", "syscall", "unsafe", "context", "testing",
	"github.com/lovoo/goka", "github.com/IBM/sarama", "github.com/twmb", "github.com/syndtr/goleveldb",
}

func below(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return p == root || strings.HasPrefix(p, root+"/") })
}

var vocabularyImports = Rule{
	Name: "codecs imports nothing of the module",
	Why:  "it is the vocabulary that everything else shares",
	Check: func(f *File) (faults []Fault) {
		if !f.In("codecs") {
			return nil
		}
		f.imports(func(spec *ast.ImportSpec, _, module string, own bool) {
			if own && !below(module, []string{"codecs"}) {
				faults = append(faults, f.fault(spec, "codecs imports %s: move what both need into codecs", module))
			}
		})
		return faults
	},
}

var topologyImports = Rule{
	Name: "topology imports codecs only",
	Why:  "a declaration must not depend on what runs it",
	Check: func(f *File) (faults []Fault) {
		if !f.In("topology") || f.Test() {
			return nil
		}
		f.imports(func(spec *ast.ImportSpec, _, module string, own bool) {
			if own && !below(module, []string{"codecs", "topology"}) {
				faults = append(faults, f.fault(spec, "topology imports %s: let the caller pass a value", module))
			}
		})
		return faults
	},
}

var machineImports = Rule{
	Name: "machines are pure and apart",
	Why:  "the same row and event must give the same messages on every replay",
	Check: func(f *File) (faults []Fault) {
		if !f.In(Machines...) {
			return nil
		}
		home := Machines[slices.IndexFunc(Machines, func(m string) bool { return f.In(m) })]
		f.imports(func(spec *ast.ImportSpec, p, module string, own bool) {
			switch {
			case own && module != home && below(module, Machines):
				faults = append(faults, f.fault(spec, "machine %s imports machine %s: machines meet in events only; put the event into codecs", home, module))
			case f.Test():
			case own && !below(module, []string{"codecs", "topology", home}):
				faults = append(faults, f.fault(spec, "machine %s imports %s: machines import codecs and topology only", home, module))
			case !own && below(p, impure):
				faults = append(faults, f.fault(spec, "machine %s imports %s: take the value from the event, return a message, or do it in the runtime", home, p))
			}
		})
		return faults
	},
}

var libraryImports = Rule{
	Name: "the library imports nothing internal",
	Why:  "codecs, topology and processors are what users import; internal is what runs them",
	Check: func(f *File) (faults []Fault) {
		if f.Test() || !f.In("codecs", "topology", "processors") {
			return nil
		}
		f.imports(func(spec *ast.ImportSpec, _, module string, own bool) {
			if own && below(module, []string{"internal", "cmd"}) && !allowed("the library imports nothing internal", f) {
				faults = append(faults, f.fault(spec, "%s imports %s: move what it needs below processors", f.Dir(), module))
			}
		})
		return faults
	},
}

var gokaImports = Rule{
	Name: "goka stays in its adapter",
	Why:  "goka's guarantees are weaker than ours; only the adapter knows how to use it",
	Check: func(f *File) (faults []Fault) {
		if f.Dir() == "processors" || f.Test() && f.In("processors") && !f.In(Machines...) {
			return nil
		}
		f.imports(func(spec *ast.ImportSpec, p, _ string, _ bool) {
			if below(p, []string{"github.com/lovoo/goka"}) && !allowed("goka stays in its adapter", f) {
				faults = append(faults, f.fault(spec, "%s imports goka: use package processors", f.Dir()))
			}
		})
		return faults
	},
}

var cliImports = Rule{
	Name: "only mains import the command line",
	Why:  "a command calls the other packages, never the other way round",
	Check: func(f *File) (faults []Fault) {
		if f.In("cmd", "internal/cli") {
			return nil
		}
		f.imports(func(spec *ast.ImportSpec, _, module string, own bool) {
			if own && below(module, []string{"cmd", "internal/cli"}) && !allowed("only mains import the command line", f) {
				faults = append(faults, f.fault(spec, "%s imports %s: move what it needs out of the command", f.Dir(), module))
			}
		})
		return faults
	},
}
