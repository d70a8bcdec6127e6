package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	makeCommand = regexp.MustCompile("(?m)(?:`|^ {4})make ([a-z-]+)")
	markdownRef = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// What the documents tell a reader to run or to read must be there.
func TestDocumentsNameWhatExists(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets, links := 0, 0
	require.NoError(t, walk(root, func(name string) error {
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		for _, m := range makeCommand.FindAllSubmatch(text, -1) {
			targets++
			if !strings.Contains("\n"+string(makefile), "\n"+string(m[1])+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", name, m[1])
			}
		}
		for _, m := range markdownRef.FindAllSubmatch(text, -1) {
			links++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(filepath.FromSlash(name)), filepath.FromSlash(string(m[1])))); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
		return nil
	}))
	require.Greater(t, targets, 5, "no commands seen")
	require.Greater(t, links, 5, "no links seen")
}

// A document that no index names is not found.
func TestEveryDocumentIsInItsIndex(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	for _, dir := range []string{"docs", "docs/adr"} {
		folder := filepath.Join(root, filepath.FromSlash(dir))
		index, err := os.ReadFile(filepath.Join(folder, "README.md"))
		require.NoError(t, err)
		documents, err := filepath.Glob(filepath.Join(folder, "*.md"))
		require.NoError(t, err)
		for _, d := range documents {
			if name := filepath.Base(d); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
				t.Errorf("%s/README.md does not link to %s", dir, name)
			}
		}
	}
}
