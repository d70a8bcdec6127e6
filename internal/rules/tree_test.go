package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheModuleKeepsItsRules(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	var files []*File
	require.NoError(t, walk(root, func(name string) error {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		for _, f := range MachinePaths(name, text) {
			t.Error(f)
		}
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") {
			return nil
		}
		f, err := Parse(name, text)
		if err == nil && !f.Generated {
			files = append(files, f)
		}
		return err
	}))
	require.Greater(t, len(files), 50, "the walk does not see the module")
	for _, rule := range All() {
		var faults []Fault
		for _, f := range files {
			faults = append(faults, rule.Check(f)...)
		}
		t.Run(rule.Name, func(t *testing.T) {
			for _, fault := range faults {
				t.Errorf("%s\n\t(%s: %s)", fault, rule.Name, rule.Why)
			}
		})
	}
	for _, e := range exceptions {
		if used[e] == 0 {
			t.Errorf("no file below %s needs its exception from %q: remove it", e.where, e.rule)
		}
	}
}
