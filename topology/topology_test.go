package topology

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const samples = "../testdata/topologies"

// sample loads one of the example files.
func sample(t testing.TB, name string) *Topology {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, name+".yaml"))
	require.NoError(t, err)
	top, err := Load(b, "")
	require.NoError(t, err)
	return top
}

// goIndex is the topology of go-index.yaml as a Go value.
func goIndex() *Topology {
	return &Topology{
		Name: "go-index", Version: 1, Source: "paths",
		Topics: map[string]Topic{"paths": {Partitions: 4}, "asts": {Partitions: 4}, "digests": {Partitions: 4}},
		Stages: map[string]Stage{
			"parse":  {In: []string{"paths"}, Out: []string{"asts"}, Group: "go-index.parse"},
			"digest": {In: []string{"paths"}, Out: []string{"digests"}, Group: "go-index.digest"},
			"report": {In: []string{"asts", "digests"}, Group: "go-index.report", Client: ClientGoka},
		},
	}
}

func TestLoadEqualsGoValue(t *testing.T) {
	require.Equal(t, goIndex(), sample(t, "go-index"))
}

func TestFits(t *testing.T) {
	for name, want := range map[string][]string{
		"go-index":   {"ledger", "markers", "count", "credit", "observe"},
		"diamond":    {"markers", "count", "credit", "observe"},
		"two-inputs": {"markers", "count", "credit", "observe"},
		"ledger":     {"ledger", "count", "credit", "observe"}, // a foreign stage
		"retry-loop": {"count", "credit", "observe"},
		"sink":       {"ledger", "markers", "count", "credit", "observe"},
	} {
		require.Equal(t, want, sample(t, name).Fits(), name)
	}
}

func TestDigest(t *testing.T) {
	base := goIndex()
	same := goIndex()
	s := same.Stages["report"]
	s.In = []string{"digests", "asts"}
	same.Stages["report"] = s
	p := same.Stages["parse"]
	p.Client = ClientLibrary // the default, said aloud
	same.Stages["parse"] = p
	require.Equal(t, base.Digest(), same.Digest())
	require.Len(t, base.Digest(), 32)

	seen := map[string]string{string(base.Digest()): "base"}
	for name, change := range map[string]func(*Topology){
		"name":       func(x *Topology) { x.Name = "other" },
		"version":    func(x *Topology) { x.Version = 2 },
		"source":     func(x *Topology) { x.Source = "asts" },
		"partitions": func(x *Topology) { x.Topics["asts"] = Topic{Partitions: 5} },
		"topic sink": func(x *Topology) { x.Topics["asts"] = Topic{Partitions: 4, Sink: true} },
		"group":      edit("parse", func(s *Stage) { s.Group = "g" }),
		"client":     edit("parse", func(s *Stage) { s.Client = ClientForeign }),
		"in":         edit("parse", func(s *Stage) { s.In = []string{"asts"} }),
		"out":        edit("parse", func(s *Stage) { s.Out = nil }),
		"sink":       edit("parse", func(s *Stage) { s.Sink = true }),
		"table":      edit("report", func(s *Stage) { s.Table = true }),
		"variable":   edit("parse", func(s *Stage) { s.Variable = true }),
	} {
		x := goIndex()
		change(x)
		other, dup := seen[string(x.Digest())]
		require.False(t, dup, "%s has the digest of %s", name, other)
		seen[string(x.Digest())] = name
	}
}

// TestCanonicalForm pins the form: a digest in a START record of an older release must still be found.
func TestCanonicalForm(t *testing.T) {
	require.Equal(t, `topology "go-index" 1 source "paths"
topic "asts" partitions=4
topic "digests" partitions=4
topic "paths" partitions=4
stage "digest" in ["paths"] out ["digests"] group "go-index.digest"
stage "parse" in ["paths"] out ["asts"] group "go-index.parse"
stage "report" in ["asts" "digests"] out [] group "go-index.report" client=goka
`, goIndex().Canonical())
}

// edit changes one stage.
func edit(stage string, change func(*Stage)) func(*Topology) {
	return func(t *Topology) {
		s := t.Stages[stage]
		change(&s)
		t.Stages[stage] = s
	}
}
