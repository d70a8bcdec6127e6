package rules

import "fmt"

// Rule is one executed rule. Check gets every Go file of the module, generated ones left out.
type Rule struct {
	Name string
	// Why is the reason, shown with every fault.
	Why   string
	Check func(*File) []Fault
}

// Fault is one breach.
type Fault struct {
	Path string // from the module's root, with slashes
	Line int
	Say  string // what is there, and what to write instead
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Say) }

// All returns every rule that looks at Go files, in the order in which they are reported.
func All() []Rule {
	return []Rule{
		vocabularyImports, topologyImports, machineImports, libraryImports, gokaImports, cliImports,
		machineClock,
		testSleeps, testSkips,
		fileLength, functionLength, mainLength, configFields,
		packageNames, unfinished,
	}
}
