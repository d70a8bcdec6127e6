package rules

import (
	"go/ast"
	"slices"
	"strings"
)

// clock are the names of package time that read a clock, wait, or depend on the machine.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Timer", "Ticker", "Local",
	"LoadLocation",
}

var machineClock = Rule{
	Name: "machines read no clock",
	Why:  "time is an input: a row's now is the append time of its records",
	Check: func(f *File) []Fault {
		if f.Test() || !f.In(Machines...) {
			return nil
		}
		return f.uses("time", clock, "take the time from the event (ev.Time)")
	},
}

var testSleeps = Rule{
	Name: "tests do not sleep",
	Why:  "a sleep is too short on a slow machine and too long on all others",
	Check: func(f *File) []Fault {
		if !f.Test() || allowed("tests do not sleep", f) {
			return nil
		}
		if f.localName("testing/synctest") != "" {
			return nil // in its bubble, to sleep is to drive the clock
		}
		return f.uses("time", []string{"Sleep"}, "wait for the condition (require.Eventually, a channel) or drive the clock (testing/synctest)")
	},
}

var testSkips = Rule{
	Name: "tests skip for listed reasons only",
	Why:  "a skipped test is not a passed one: the reason says how to run it",
	Check: func(f *File) (faults []Fault) {
		// Besides tests: packages that help tests take a testing.TB.
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !f.Test() && f.localName("testing") == "" || f.isPackage(sel.X) {
				return true
			}
			switch sel.Sel.Name {
			case "Skip":
				if !slices.Contains(SkipReasons, literal(call.Args)) {
					faults = append(faults, f.fault(call, "skips without a reason that rules.SkipReasons lists: run the test, or list the reason with the command that runs it"))
				}
			case "Skipf", "SkipNow":
				faults = append(faults, f.fault(call, "%s: use Skip with a reason of rules.SkipReasons", sel.Sel.Name))
			}
			return true
		})
		return faults
	},
}

func literal(args []ast.Expr) string {
	if len(args) != 1 {
		return ""
	}
	lit, ok := args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	return strings.Trim(lit.Value, "`\"")
}

// uses returns a fault for every use of one of the names of an imported package.
func (f *File) uses(importPath string, names []string, instead string) (faults []Fault) {
	local := f.localName(importPath)
	if local == "" {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, sel.Sel.Name) {
			faults = append(faults, f.fault(sel, "%s.%s: %s", importPath, sel.Sel.Name, instead))
		}
		return true
	})
	return faults
}
