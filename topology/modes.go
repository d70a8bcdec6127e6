package topology

import (
	"slices"
	"strings"
)

// mode: what the batch's mode cannot do.
func (v *validator) mode() {
	switch v.Mode {
	case "":
	case ModeLedger:
		v.acyclic()
		v.ledger()
	case ModeMarkers:
		v.acyclic()
		v.markers()
	case ModeCount:
		v.count()
	case ModeCredit, ModeObserve:
	default:
		v.faults.add("", "unknown mode %q; known are %s", v.Mode, strings.Join(Modes(), ", "))
	}
}

func (v *validator) acyclic() {
	for _, s := range v.t.cycles() {
		v.faults.add(join("stages", s), "the stage is in a cycle, which %s cannot follow: use count, credit or observe", v.Mode)
	}
}

// markers: END travels over every edge, so every stage has to send it on.
func (v *validator) markers() {
	t := v.t
	for _, name := range sortedKeys(t.Stages) {
		if t.Stages[name].ClientOf() == ClientForeign {
			v.faults.add(join("stages", name)+".client",
				"a foreign client does not send END on and does not report it: use the library, or observe")
		}
	}
}

const otherModes = "use count, credit, markers or observe"

// ledger: every leg gets exactly one outcome for each root, so no topic may carry two records of one root.
func (v *validator) ledger() {
	t := v.t
	if n := len(t.Legs()); n > MaxLegs {
		v.faults.add("stages", "%d legs (inputs of stages that send nothing on), at most %d: %s", n, MaxLegs, otherModes)
	}
	for _, name := range sortedKeys(t.Stages) {
		s, path := t.Stages[name], join("stages", name)
		if out := t.Outputs(name); len(s.In) > 1 && len(out) > 0 {
			v.faults.add(path, "two inputs and outputs: topic %q would carry two records of one root: %s", out[0], otherModes)
		}
		if s.Variable && len(t.Outputs(name)) > 0 {
			v.faults.add(path+".variable", "a root would have any number of records: %s", otherModes)
		}
	}
	for _, name := range sortedKeys(t.Topics) {
		writers := t.Writers(name)
		if name == t.Source {
			writers = append(writers, "the feeders")
		}
		if len(writers) > 1 {
			v.faults.add(join("topics", name), "written by %s: it would carry two records of one root: %s",
				strings.Join(writers, " and "), otherModes)
		}
	}
}

// count: what a stage sends must follow from the input record alone.
func (v *validator) count() {
	for _, name := range sortedKeys(v.t.Stages) {
		if s := v.t.Stages[name]; s.Table && len(v.t.Outputs(name)) > 0 {
			v.faults.add(join("stages", name)+".table",
				"a goka stage with a table and outputs is not stateless: use a machine on the runtime, markers or observe")
		}
	}
}

// Fits returns the modes that the topology can have.
func (t *Topology) Fits() []string {
	return slices.DeleteFunc(Modes(), func(mode string) bool { return t.Validate(mode) != nil })
}
