package topology

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Text renders the job type for people: steps in order, in aligned columns.
func (j *JobType) Text() string {
	d := j.WithDefaults()
	var b strings.Builder
	fmt.Fprintf(&b, "job %s, version %d, digest %x", d.Name, d.Version, j.Digest()[:6])
	if d.CompleteBy > 0 {
		fmt.Fprintf(&b, ", complete by %v", d.CompleteBy)
	}
	b.WriteString("\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tAFTER\tKIND\tQUEUE\tRETRY\tLIMITS")
	order, rest := d.order()
	for _, name := range append(order, rest...) {
		s := d.Steps[name]
		kind, queue, retry, limits := s.columns()
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", name, orNone(strings.Join(s.After, " ")), kind, queue, retry, orNone(limits))
	}
	w.Flush() //nolint:errcheck // a strings.Builder takes everything
	return trimLines(b.String())
}

func (s Step) columns() (kind, queue, retry, limits string) {
	var l []string
	limit := func(set bool, format string, args ...any) {
		if set {
			l = append(l, fmt.Sprintf(format, args...))
		}
	}
	switch {
	case s.Task != nil:
		limit(s.Task.AttemptTimeout > 0, "attempt %v", s.Task.AttemptTimeout)
		return "task", s.Task.Queue, s.Task.Retry.String(), strings.Join(l, ", ")
	case s.FanOut != nil:
		f := s.FanOut
		limit(true, "window %d", f.Window)
		limit(f.AttemptTimeout > 0, "attempt %v", f.AttemptTimeout)
		limit(f.Policy.Kind == policyTolerate, "tolerate %s", f.Policy.Tolerate)
		limit(f.Policy.Kind == policyFailFast, "fail fast")
		limit(f.CompleteBy > 0, "complete by %v", f.CompleteBy)
		limit(f.NoProgressFor > 0, "no progress for %v", f.NoProgressFor)
		limit(f.CompleteBy > 0 || f.NoProgressFor > 0, "then %s", f.OnDeadline)
		limit(f.OpenChildren, "may add sub-jobs")
		return "fan-out", f.Split + " > " + f.Queue, f.Retry.String(), strings.Join(l, ", ")
	}
	return "-", "-", "-", ""
}

// String is short: "5 attempts, 1s x4 to 5m0s".
func (r *Retry) String() string {
	if r.Attempts == 1 {
		return "none"
	}
	return fmt.Sprintf("%d attempts, %v x%v to %v", r.Attempts, r.First, r.Factor, r.Max)
}

// Mermaid renders the job type as a Mermaid flow chart: a task is a box, a fan-out a stack.
func (j *JobType) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	id := map[string]string{}
	for i, name := range sortedKeys(j.Steps) {
		id[name] = fmt.Sprintf("s%d", i)
		if f := j.Steps[name].FanOut; f != nil {
			fmt.Fprintf(&b, "    %s[[\"%s<br/>%s\"]]\n", id[name], name, f.Queue)
		} else if t := j.Steps[name].Task; t != nil {
			fmt.Fprintf(&b, "    %s[\"%s<br/>%s\"]\n", id[name], name, t.Queue)
		}
	}
	for _, name := range sortedKeys(j.Steps) {
		for _, before := range sorted(j.Steps[name].After) {
			fmt.Fprintf(&b, "    %s --> %s\n", id[before], id[name])
		}
	}
	return b.String()
}

// DOT renders the job type for Graphviz.
func (j *JobType) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR;\n", j.Name)
	for _, name := range sortedKeys(j.Steps) {
		if f := j.Steps[name].FanOut; f != nil {
			fmt.Fprintf(&b, "  %q [shape=box3d, label=\"%s\\n%s\"];\n", name, name, f.Queue)
		} else if t := j.Steps[name].Task; t != nil {
			fmt.Fprintf(&b, "  %q [shape=box, label=\"%s\\n%s\"];\n", name, name, t.Queue)
		}
	}
	for _, name := range sortedKeys(j.Steps) {
		for _, before := range sorted(j.Steps[name].After) {
			fmt.Fprintf(&b, "  %q -> %q;\n", before, name)
		}
	}
	b.WriteString("}\n")
	return b.String()
}
