package demo

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// write makes a folder of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
	}
	return dir
}

// small is a folder with two equal files, a broken one, an empty one, and one that is no Go file.
var small = map[string]string{
	"a.go":       "package a\n\nfunc F() {}\n\ntype T int\n\nvar x, y = 1, 2\n",
	"sub/a.go":   "package a\n\nfunc F() {}\n\ntype T int\n\nvar x, y = 1, 2\n",
	"broken.go":  "package\n",
	"empty.go":   "",
	"readme.txt": "not Go",
}

func TestPlainCountsDuplicatesAndFailures(t *testing.T) {
	x, err := Plain(context.Background(), write(t, small))
	require.NoError(t, err)
	require.Equal(t, 4, x.Files)
	require.Equal(t, 2, x.Parsed)
	require.Equal(t, 8, x.Declarations)
	require.Equal(t, 3, x.Digests)
	require.Equal(t, [][]string{{"a.go", "sub/a.go"}}, x.Duplicates)
	require.Equal(t, []Failure{
		{"broken.go", StageParse, "broken.go:1:9: expected 'IDENT', found 'EOF'"},
		{"empty.go", StageParse, "empty.go:1:1: expected 'package', found 'EOF'"},
	}, x.Failures)
}

func TestPlainOnBadFolders(t *testing.T) {
	_, err := Plain(context.Background(), filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "input folder")
	_, err = Plain(context.Background(), filepath.Join(write(t, small), "a.go"))
	require.ErrorContains(t, err, "is not a folder")
	x, err := Plain(context.Background(), t.TempDir())
	require.NoError(t, err)
	require.Equal(t, 0, x.Files)
}

func TestUnreadableFileIsAFailureOfRead(t *testing.T) {
	dir := write(t, small)
	require.NoError(t, os.Remove(filepath.Join(dir, "broken.go")))
	_, err := readFile(dir, "broken.go")
	require.EqualError(t, err, "open: no such file or directory")
}

func TestDifferencesNameWhatDiffers(t *testing.T) {
	ctx := context.Background()
	dir := write(t, small)
	want, err := Plain(ctx, dir)
	require.NoError(t, err)
	got, err := Plain(ctx, dir)
	require.NoError(t, err)
	require.Empty(t, got.Differences(want))

	got.Declarations--
	got.Failures = got.Failures[:1]
	got.Failures[0].Reason = "other"
	require.Equal(t, []string{
		"declarations: 7, the plain loop has 8",
		"broken.go failed in parse (other), in the plain loop in parse (broken.go:1:9: expected 'IDENT', found 'EOF')",
		"empty.go failed in the plain loop (parse: empty.go:1:1: expected 'package', found 'EOF'), not here",
	}, got.Differences(want))
}

func TestEntryKeepsTheSmallestPaths(t *testing.T) {
	var forward, backward Entry
	for i := range maxPaths + 10 {
		forward.AddPath(string(rune('a'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26)))
		j := maxPaths + 9 - i
		backward.AddPath(string(rune('a'+j/676)) + string(rune('a'+j/26%26)) + string(rune('a'+j%26)))
	}
	require.Len(t, forward.Paths, maxPaths)
	require.Equal(t, forward.Paths, backward.Paths)
	forward.AddPath("aaa")
	require.Len(t, forward.Paths, maxPaths)
}
