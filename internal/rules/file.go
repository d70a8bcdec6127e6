package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// ModulePath is the module's import path.
const ModulePath = "github.com/quiesce/quiesce"

// File is one Go file of the module.
type File struct {
	Path      string // from the module's root, with slashes
	Lines     int
	Generated bool
	fset      *token.FileSet
	ast       *ast.File
}

// Parse reads one Go file.
func Parse(name string, src []byte) (*File, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	return &File{
		Path: name, Lines: bytes.Count(src, []byte("\n")), Generated: ast.IsGenerated(tree), fset: fset, ast: tree,
	}, nil
}

// Dir is the file's folder: "" at the root, else like "internal/rules".
func (f *File) Dir() string {
	if d := path.Dir(f.Path); d != "." {
		return d
	}
	return ""
}

// In reports whether the file is in one of the folders or below it.
func (f *File) In(folders ...string) bool {
	for _, d := range folders {
		if f.Dir() == d || strings.HasPrefix(f.Dir(), d+"/") {
			return true
		}
	}
	return false
}

// Test reports whether the file is a test.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Package is the name after the package clause.
func (f *File) Package() string { return f.ast.Name.Name }

func (f *File) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

func (f *File) fault(n ast.Node, format string, args ...any) Fault {
	return Fault{Path: f.Path, Line: f.line(n), Say: fmt.Sprintf(format, args...)}
}

// imports calls fn with every import path of the file; module is the folder of a package of this module, else "".
func (f *File) imports(fn func(spec *ast.ImportSpec, importPath, module string, own bool)) {
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser accepts no such import
		}
		module, own := strings.CutPrefix(p, ModulePath+"/")
		fn(spec, p, module, own)
	}
}

// isPackage says whether an expression is the name of an imported package.
func (f *File) isPackage(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	found := false
	f.imports(func(_ *ast.ImportSpec, p, _ string, _ bool) { found = found || ok && f.localName(p) == id.Name })
	return found
}

// localName is the name by which the file calls an imported package, "" when it does not import it.
func (f *File) localName(importPath string) string {
	name := ""
	f.imports(func(spec *ast.ImportSpec, p, _ string, _ bool) {
		switch {
		case p != importPath:
		case spec.Name != nil:
			name = spec.Name.Name
		default:
			name = path.Base(p)
		}
	})
	return name
}

// Root returns the module's folder: the nearest one at or above the working directory that has a go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod at or above %s", dir)
		}
		dir = parent
	}
}

// walk calls fn with every file below root, with slashes, that belongs to the project: no hidden folders but .ci, no
// build output.
func walk(root string, fn func(name string) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && name != ".ci" && (strings.HasPrefix(d.Name(), ".") || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || name == ".git" { // a file in a work tree
			return nil
		}
		return fn(name)
	})
}
