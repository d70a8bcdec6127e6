package rules

import (
	"go/ast"
	"strings"
)

// Limits. Generated code is exempt from all of them, tests from the first two.
const (
	MaxFileLines     = 400
	MaxFunctionLines = 60
	MaxMainLines     = 30
	MaxConfigFields  = 15
)

var fileLength = Rule{
	Name: "a file has at most 400 lines",
	Why:  "one concept a file, so that the file list reads as an index",
	Check: func(f *File) []Fault {
		if f.Test() || f.Lines <= MaxFileLines {
			return nil
		}
		return []Fault{{Path: f.Path, Line: MaxFileLines, Say: "longer than 400 lines: split it by concept"}}
	},
}

var functionLength = Rule{
	Name: "a function has at most 60 lines",
	Why:  "longer ones do more than one thing",
	Check: func(f *File) (faults []Fault) {
		if f.Test() {
			return nil
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.fset.Position(fn.End()).Line - f.line(fn) + 1; n > MaxFunctionLines {
				faults = append(faults, f.fault(fn, "%s has %d lines: name its steps as functions of their own", fn.Name.Name, n))
			}
		}
		return faults
	},
}

var mainLength = Rule{
	Name: "a main has less than 30 lines",
	Why:  "what a command does must be importable, and so testable",
	Check: func(f *File) []Fault {
		if f.Package() != "main" || f.Test() || f.Lines < MaxMainLines {
			return nil
		}
		return []Fault{{Path: f.Path, Line: MaxMainLines, Say: "a package main of 30 lines or more: move its body into a package"}}
	},
}

var configFields = Rule{
	Name: "a config has at most 15 fields",
	Why:  "more of them are several concepts",
	Check: func(f *File) (faults []Fault) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && s.Fields.NumFields() > MaxConfigFields {
				faults = append(faults, f.fault(spec, "%s has %d fields: group them in structs of their own", spec.Name.Name, s.Fields.NumFields()))
			}
			return true
		})
		return faults
	},
}
