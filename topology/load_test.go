package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLoadReportsAllFaultsWithLines: one file, wrong in every way that a reader can be.
func TestLoadReportsAllFaultsWithLines(t *testing.T) {
	_, err := Load([]byte(`topology: bad
version: one
source: paths
colour: blue
topics:
  paths: {partitions: 4, partitons: 4}
  asts: {partitions: four}
  paths: {}
  digests: [1]
stages:
  parse:
    in: paths
    out: [asts, {a: b}]
    group: g
    client: java
  digest: {in: [paths, nope], out: [digests], group: g, sink: "yes"}
  report: {in: [asts, digests], group: h}
`), "")
	require.Equal(t, strings.TrimSpace(`
line 2: version: "one" is not a whole number from 0
line 4: colour: unknown key; known are topology, version, source, topics, stages
line 6: topics.paths.partitons: unknown key; known are partitions, sink
line 7: topics.asts.partitions: "four" is not a whole number
line 8: topics.paths: the key is there twice
line 9: topics.digests: a mapping is expected, not a list
line 12: stages.parse.in: a list is expected, not a value of type string
line 13: stages.parse.out[1]: a plain value is expected, not a mapping
line 14: stages.parse.group: group "g" belongs to stage digest already
line 15: stages.parse.client: unknown client "java"; known are library, goka, foreign
line 16: stages.digest.sink: "yes" is not true or false
line 16: stages.digest.in[1]: topic "nope" is not declared`), err.Error())
}

func TestLoadRefusesWhatIsNoDeclaration(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "0 YAML documents",
		"a: b\n---\nc: d\n":             "2 YAML documents",
		"- a\n- b\n":                    "a mapping is expected",
		"topology: [":                   "line 1",
		"topology: &x a\nsource: *x\n":  "an anchor, alias, tag or merge key",
		"topology: !!str a\n":           "an anchor, alias, tag or merge key",
		"stages: {a: {in: [[x]]}}":      "a plain value is expected, not a list",
		strings.Repeat("#", 2<<20):      "2097152 bytes",
		"a: " + strings.Repeat("[", 99): "line 1",
	} {
		_, err := Load([]byte(in), "")
		require.ErrorContains(t, err, want, "%.40q", in)
	}
}

func TestLoadNamesModeFaultsWithLines(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(samples, "diamond.yaml"))
	require.NoError(t, err)
	_, err = Load(b, ModeLedger)
	require.EqualError(t, err, "line 7: topics.checked: written by fraud and stock: it would carry two records of one root: "+
		"use count, credit, markers or observe")
}

// FuzzLoad: no bytes make the loader panic, and what it accepts is valid and means the same when it is loaded again.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte("topology: {a: [&x 1, *x, <<: y]}\n? z\n: !!int 3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		top, err := Load(b, "")
		if err != nil {
			require.Nil(t, top)
			require.NotEmpty(t, err.Error())
			return
		}
		require.NoError(t, top.Validate(""))
		again, err := Load(b, "")
		require.NoError(t, err)
		require.Equal(t, top.Digest(), again.Digest())
		require.NotEmpty(t, top.Text()+top.Mermaid()+top.DOT())
	})
}
