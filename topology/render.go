package topology

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Text renders the topology for people: stages in topological order, then topics, in aligned columns.
func (t *Topology) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "topology %s, version %d, digest %x, modes: %s\n\n", t.Name, t.Version, t.Digest()[:6],
		orNone(strings.Join(t.Fits(), " ")))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STAGE\tIN\tOUT\tGROUP\tCLIENT\tNOTES")
	order, rest := t.order()
	for _, name := range append(order, rest...) {
		s := t.Stages[name]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", name, orNone(strings.Join(s.In, " ")), orNone(strings.Join(s.Out, " ")),
			s.Group, s.ClientOf(), t.stageNotes(name))
	}
	fmt.Fprintln(w, "\nTOPIC\tPARTITIONS\tWRITTEN BY\tREAD BY\tNOTES")
	for _, name := range sortedKeys(t.Topics) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, count(t.Topics[name].Partitions), orNone(t.writtenBy(name)),
			orNone(strings.Join(t.Readers(name), " ")), t.topicNotes(name))
	}
	w.Flush() //nolint:errcheck // a strings.Builder takes everything
	return trimLines(b.String())
}

func (t *Topology) stageNotes(name string) string {
	s := t.Stages[name]
	var notes []string
	if len(t.Outputs(name)) == 0 {
		notes = append(notes, "end")
	}
	for note, set := range map[string]bool{"sink": s.Sink, "table": s.Table, "variable": s.Variable} {
		if set {
			notes = append(notes, note)
		}
	}
	return strings.Join(sorted(notes), ", ")
}

func (t *Topology) topicNotes(name string) string {
	var notes []string
	if name == t.Source {
		notes = append(notes, "source")
	}
	if t.outside(name) {
		notes = append(notes, "outside the batch")
	}
	return strings.Join(notes, ", ")
}

// writtenBy names all stages that write a topic, those whose records are outside the batch included, and the feeders.
func (t *Topology) writtenBy(topic string) string {
	var w []string
	if topic == t.Source {
		w = append(w, FeederStage)
	}
	for _, name := range sortedKeys(t.Stages) {
		for _, out := range t.Stages[name].Out {
			if out == topic {
				w = append(w, name)
			}
		}
	}
	return strings.Join(w, " ")
}

func count(n int32) string {
	if n == 0 {
		return "existing"
	}
	return fmt.Sprint(n)
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// Mermaid renders the topology as a Mermaid flow chart: topics are drums, stages boxes, dashed edges leave the batch.
func (t *Topology) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n    feeder([feeder])\n")
	id := t.nodeIDs()
	for _, name := range sortedKeys(t.Topics) {
		fmt.Fprintf(&b, "    %s[(\"%s<br/>%s\")]\n", id["topic "+name], name, partitions(t.Topics[name].Partitions))
	}
	for _, name := range sortedKeys(t.Stages) {
		fmt.Fprintf(&b, "    %s[\"%s\"]\n", id["stage "+name], name)
	}
	t.edges(func(from, to string, inside bool) {
		arrow := "-->"
		if !inside {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "    %s %s %s\n", id[from], arrow, id[to])
	})
	return b.String()
}

// DOT renders the topology for Graphviz.
func (t *Topology) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR;\n  \"feeder\" [shape=oval];\n", t.Name)
	for _, name := range sortedKeys(t.Topics) {
		fmt.Fprintf(&b, "  %q [shape=cylinder, label=\"%s\\n%s\"];\n", "topic "+name, name, partitions(t.Topics[name].Partitions))
	}
	for _, name := range sortedKeys(t.Stages) {
		fmt.Fprintf(&b, "  %q [shape=box, label=%q];\n", "stage "+name, name)
	}
	t.edges(func(from, to string, inside bool) {
		style := ""
		if !inside {
			style = " [style=dashed]"
		}
		fmt.Fprintf(&b, "  %q -> %q%s;\n", from, to, style)
	})
	b.WriteString("}\n")
	return b.String()
}

// edges visits every edge, from the source on: "feeder", "topic NAME" or "stage NAME".
func (t *Topology) edges(visit func(from, to string, inside bool)) {
	visit(FeederStage, "topic "+t.Source, true)
	order, rest := t.order()
	for _, name := range append(order, rest...) {
		s := t.Stages[name]
		for _, in := range sorted(s.In) {
			visit("topic "+in, "stage "+name, true)
		}
		for _, out := range sorted(s.Out) {
			visit("stage "+name, "topic "+out, !t.outside(out))
		}
	}
}

// nodeIDs gives each node a short id that needs no quoting.
func (t *Topology) nodeIDs() map[string]string {
	ids := map[string]string{FeederStage: FeederStage}
	for i, name := range sortedKeys(t.Topics) {
		ids["topic "+name] = fmt.Sprintf("t%d", i)
	}
	for i, name := range sortedKeys(t.Stages) {
		ids["stage "+name] = fmt.Sprintf("s%d", i)
	}
	return ids
}

func partitions(n int32) string {
	switch n {
	case 0:
		return "existing"
	case 1:
		return "1 partition"
	}
	return fmt.Sprintf("%d partitions", n)
}
