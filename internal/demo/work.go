package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is what read says about a file. The feeder names only its path.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size,omitempty"`
	Digest string `json:"digest,omitempty"` // sha-256, hexadecimal
}

// Decls counts the top-level declarations of a file: what parse says about it.
type Decls struct {
	Path   string `json:"path"`
	Funcs  int    `json:"funcs"`
	Types  int    `json:"types"`
	Values int    `json:"values"` // constants and variables
}

// Total is the number of declarations.
func (d Decls) Total() int { return d.Funcs + d.Types + d.Values }

// readFile stats and hashes a file.
func readFile(root, path string) (File, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return File{}, errors.New(reason(err))
	}
	sum := sha256.Sum256(b)
	return File{Path: path, Size: int64(len(b)), Digest: hex.EncodeToString(sum[:])}, nil
}

// parseFile counts the declarations of a file. Its error is one line that names the place relative to the root.
func parseFile(root, path string) (Decls, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return Decls{}, errors.New(reason(err))
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, b, parser.SkipObjectResolution)
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return Decls{}, errors.New(line)
	}
	d := Decls{Path: path}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			d.Funcs++
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					d.Types++
				case *ast.ValueSpec:
					d.Values += len(spec.Names)
				}
			}
		}
	}
	return d, nil
}

// reason is the cause of a file error without the machine's own path, so that two runs say the same.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Op + ": " + pe.Err.Error()
	}
	return err.Error()
}
