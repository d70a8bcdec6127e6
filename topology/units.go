package topology

import (
	"fmt"
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// Partitions holds the partition count of each topic of a topology.
type Partitions map[string]int32

// Resolver returns the real partition count of a topic; 0 = it does not exist.
type Resolver func(topic string) (int32, error)

// Resolve returns the real counts of all topics. A count that differs from the declared one is a fault, as is a topic
// that does not exist. Without a resolver the declared counts are taken, and each topic must have one.
func (t *Topology) Resolve(resolve Resolver) (Partitions, error) {
	if resolve == nil {
		resolve = func(topic string) (int32, error) { return t.Topics[topic].Partitions, nil }
	}
	counts := Partitions{}
	var faults Faults
	for _, name := range sortedKeys(t.Topics) {
		path, declared := join("topics", name), t.Topics[name].Partitions
		n, err := resolve(name)
		switch {
		case err != nil:
			faults.add(path, "%v", err)
		case n <= 0 && declared == 0:
			faults.add(path, "has no declared partitions, so it must exist, and it does not")
		case n <= 0:
			faults.add(path, "does not exist")
		case declared != 0 && n != declared:
			faults.add(path+".partitions", "declared with %d, has %d", declared, n)
		}
		counts[name] = n
	}
	return counts, faults.err()
}

// Units returns the input partitions of all stages, by (stage, topic): those that must have seen the end of a batch.
func (t *Topology) Units(counts Partitions) []*codecs.UnitSet {
	var units []*codecs.UnitSet
	for _, stage := range sortedKeys(t.Stages) {
		units = append(units, t.unitsOf(stage, counts)...)
	}
	return units
}

func (t *Topology) unitsOf(stage string, counts Partitions) []*codecs.UnitSet {
	var units []*codecs.UnitSet
	for _, topic := range sorted(t.Stages[stage].In) {
		units = append(units, &codecs.UnitSet{Stage: stage, Topic: topic, Partitions: uint32(counts[topic])})
	}
	return units
}

// Upstream returns the units that can write to any partition of a topic: a unit that reads it has seen the end of a
// batch when it has END from every one of them. The k feeders of a batch are the units (FeederStage, source, 0..k-1).
func (t *Topology) Upstream(topic string, counts Partitions, feeders uint32) []*codecs.UnitSet {
	var units []*codecs.UnitSet
	if topic == t.Source {
		units = append(units, &codecs.UnitSet{Stage: FeederStage, Topic: topic, Partitions: max(feeders, 1)})
	}
	for _, w := range t.Writers(topic) {
		units = append(units, t.unitsOf(w, counts)...)
	}
	return units
}

// Legs returns the declared ends (a stage that sends nothing on within the batch, and one of its inputs), by
// (stage, topic). A leg's number is its place in the list.
func (t *Topology) Legs() []*codecs.Leg {
	var legs []*codecs.Leg
	for _, stage := range sortedKeys(t.Stages) {
		if len(t.Outputs(stage)) > 0 {
			continue
		}
		for _, topic := range sorted(t.Stages[stage].In) {
			legs = append(legs, &codecs.Leg{Stage: stage, Topic: topic})
		}
	}
	return legs
}

// Leg returns the number of the leg (stage, topic), and whether it is one.
func (t *Topology) Leg(stage, topic string) (uint32, bool) {
	for i, l := range t.Legs() {
		if l.Stage == stage && l.Topic == topic {
			return uint32(i), true
		}
	}
	return 0, false
}

// ReachableLegs returns the numbers of the legs that a record which a stage reads from a topic can reach. A stage that
// fails or filters the record reports its outcome for each of them. At an end stage it is the leg itself.
func (t *Topology) ReachableLegs(stage, topic string) []uint32 {
	if n, ok := t.Leg(stage, topic); ok {
		return []uint32{n}
	}
	topics := t.Outputs(stage)
	for _, s := range t.downstream(topics...) {
		topics = append(topics, t.Outputs(s)...)
	}
	var legs []uint32
	for i, l := range t.Legs() {
		if slices.Contains(topics, l.Topic) {
			legs = append(legs, uint32(i))
		}
	}
	return legs
}

// Start returns the part of START that the topology decides: mode, reference, and, from the real partition counts,
// the units (markers, count, observe) or the legs (ledger). It refuses a topology that cannot have this mode.
func (t *Topology) Start(mode string, resolve Resolver) (*codecs.BatchStart, error) {
	if mode == "" {
		mode = ModeLedger
	}
	counts, err := t.Resolve(resolve)
	if err != nil {
		return nil, fmt.Errorf("topology %s: start: %w", t.Name, err)
	}
	if err := t.Check(Check{Mode: mode, Partitions: counts}); err != nil {
		return nil, fmt.Errorf("topology %s: start in mode %s: %w", t.Name, mode, err)
	}
	start := &codecs.BatchStart{Mode: mode, Topology: t.Ref()}
	switch mode {
	case ModeLedger:
		start.Legs = t.Legs()
	case ModeMarkers, ModeCount, ModeObserve:
		start.Units = t.Units(counts)
	}
	return start, nil
}
