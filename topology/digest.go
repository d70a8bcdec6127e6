package topology

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// Canonical is the form that the digest is taken of: one line for the topology, each topic and each stage, in order,
// with lists sorted and options only where they differ from their default. Two declarations that mean the same have the
// same form, and an option added later does not change the form of those that do not use it.
func (t *Topology) Canonical() string {
	var b strings.Builder
	fmt.Fprintf(&b, "topology %q %d source %q\n", t.Name, t.Version, t.Source)
	for _, name := range sortedKeys(t.Topics) {
		topic := t.Topics[name]
		fmt.Fprintf(&b, "topic %q", name)
		option(&b, "partitions", topic.Partitions, topic.Partitions != 0)
		option(&b, "sink", true, topic.Sink)
		b.WriteByte('\n')
	}
	for _, name := range sortedKeys(t.Stages) {
		s := t.Stages[name]
		fmt.Fprintf(&b, "stage %q in %q out %q group %q", name, sorted(s.In), sorted(s.Out), s.Group)
		option(&b, "client", s.Client, s.ClientOf() != ClientLibrary)
		option(&b, "sink", true, s.Sink)
		option(&b, "table", true, s.Table)
		option(&b, "variable", true, s.Variable)
		b.WriteByte('\n')
	}
	return b.String()
}

func option(b *strings.Builder, name string, value any, set bool) {
	if set {
		fmt.Fprintf(b, " %s=%v", name, value)
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// Digest is the sha-256 of the canonical form. START pins it: the same name and version with another digest is refused.
func (t *Topology) Digest() []byte {
	d := sha256.Sum256([]byte(t.Canonical()))
	return d[:]
}

// Ref names the topology in START.
func (t *Topology) Ref() *codecs.TopologyRef {
	return &codecs.TopologyRef{Name: t.Name, Version: t.Version, Digest: t.Digest()}
}
