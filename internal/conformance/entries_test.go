package conformance

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	scripts "github.com/quiesce/quiesce/testdata/conformance"
)

// entries is how many there are: C01 to C50.
const entries = 50

// Every entry is there by its name: a script, or a test TestConformance/C07 in the package that can show it.
func TestEveryEntryIsShown(t *testing.T) {
	shown := map[string][]string{}
	all, err := Load(scripts.FS)
	require.NoError(t, err)
	for _, s := range all {
		shown[s.ID[:3]] = append(shown[s.ID[:3]], "testdata/conformance/"+s.ID+".yaml")
	}
	for id, where := range goEntries(t, filepath.Join("..", "..")) {
		shown[id] = append(shown[id], where...)
	}
	for n := range entries {
		id := fmt.Sprintf("C%02d", n+1)
		require.NotEmpty(t, shown[id], "no script and no test is named %s", id)
	}
	require.Len(t, shown, entries, "there is no such entry: %v", shown)
	checkDocument(t, filepath.Join("..", "..", "docs", "conformance.md"), shown)
}

var rewrite = flag.Bool("rewrite", false, "write the last column of docs/conformance.md")

var row = regexp.MustCompile(`(?m)^(\| (C[0-9]{2}) \|.*\|)([^|\n]*)\|$`)

// checkDocument compares the last column of the document with what shows each entry.
func checkDocument(t *testing.T, name string, shown map[string][]string) {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	text := string(b)
	want := row.ReplaceAllStringFunc(text, func(line string) string {
		m := row.FindStringSubmatch(line)
		var links []string
		for _, file := range shown[m[2]] {
			text := strings.TrimSuffix(path.Base(file), ".yaml")
			if strings.HasSuffix(file, ".go") {
				text = path.Dir(file)
			}
			links = append(links, fmt.Sprintf("[%s](../%s)", text, file))
		}
		return m[1] + " " + strings.Join(links, ", ") + " |"
	})
	if *rewrite {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o600))
		return
	}
	require.Len(t, row.FindAllString(text, -1), entries)
	require.Equal(t, want, text, "go test ./internal/conformance -run TestEveryEntryIsShown -rewrite")
}

// A test that is not run shows nothing, and neither does a call elsewhere.
func TestGoEntriesAreThoseThatRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(`package a

func TestConformance(t *testing.T) {
	t.Run("C07", f)
	if testing.Short() {
		t.Run("C08", f)
	}
	t.Run("other", f)
	// t.Run("C09", f)
}

func TestConformanceC10Something(t *testing.T) {}

func helper(t *testing.T) { t.Run("C11", f) }
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.go"), []byte("package a\nfunc TestConformanceC12(t *testing.T) {}\n"), 0o600))
	require.Equal(t, map[string][]string{"C07": {"a_test.go"}, "C10": {"a_test.go"}}, goEntries(t, dir))
}

var inName = regexp.MustCompile(`^TestConformance(C[0-9]{2})`)

// goEntries returns the files of the tests of each entry: sub-tests that TestConformance always runs, and tests whose own
// name says it.
func goEntries(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, id := range entriesOf(fn) {
				found[id] = append(found[id], name)
			}
		}
		return err
	}))
	return found
}

func entriesOf(fn *ast.FuncDecl) (ids []string) {
	if m := inName.FindStringSubmatch(fn.Name.Name); m != nil {
		return []string{m[1]}
	}
	if fn.Name.Name != "TestConformance" {
		return nil
	}
	for _, stmt := range fn.Body.List { // not those under a condition
		e, ok := stmt.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := e.X.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			continue
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "Run" {
			continue
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			continue
		}
		if id, err := strconv.Unquote(lit.Value); err == nil && scriptID.MatchString(id) {
			ids = append(ids, id[:3])
		}
	}
	return ids
}
