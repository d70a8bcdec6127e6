package markers

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// plan is what a batch pinned, as this unit sees it.
type plan struct {
	text     string
	pinned   *codecs.Plan
	upstream []*codecs.UnitSet // in the order of the topology; numbered through
	required int               // units in upstream; 0 = the topology is not known here: never aligned
}

// number returns the place of a source unit among the required ones.
func (p *plan) number(u *codecs.Unit) (int, bool) {
	base := 0
	for _, set := range p.upstream {
		if set.Stage == u.GetStage() && set.Topic == u.GetTopic() {
			return base + int(u.GetPartition()), u.GetPartition() < set.Partitions
		}
		base += int(set.Partitions)
	}
	return 0, false
}

// missing lists the required units that are not in the set, at most max of them.
func (p *plan) missing(seen bits, max int) (units []*codecs.Unit) {
	base := 0
	for _, set := range p.upstream {
		for i := range set.Partitions {
			if !seen.has(base+int(i)) && len(units) < max {
				units = append(units, &codecs.Unit{Stage: set.Stage, Topic: set.Topic, Partition: i})
			}
		}
		base += int(set.Partitions)
	}
	return units
}

// plan finds or makes the plan of a header's text. "" = the batch pinned nothing: one feeder, and the counts that the
// topics had when the unit was made.
func (u *Unit) plan(text string) *plan {
	if text == "" {
		text = u.unpinned
	}
	if p, ok := u.plans[text]; ok {
		return p
	}
	p := &plan{text: text}
	u.plans[text] = p
	pinned, err := codecs.ParsePlan(text)
	if err != nil {
		return p
	}
	p.pinned = pinned
	t := u.version(pinned)
	if t == nil {
		return p
	}
	p.upstream = t.Upstream(u.cfg.Unit.Topic, pinned.Partitions, pinned.Feeders)
	for _, set := range p.upstream {
		if set.Partitions == 0 { // the plan does not name the topic: nothing is known of its writers
			p.upstream, p.required = nil, 0
			return p
		}
		p.required += int(set.Partitions)
	}
	return p
}

// version finds the declaration that a plan names, among those that have the unit's stage and input.
func (u *Unit) version(p *codecs.Plan) *topology.Topology {
	for _, t := range u.cfg.Topologies {
		if t.Name == p.Topology && t.Version == p.Version {
			return t
		}
	}
	return nil
}

// Outputs returns the topics and pinned partition counts to which END of a batch with that plan goes.
func (u *Unit) outputs(p *plan) []Output {
	t := u.version(p.pinned)
	var out []Output
	for _, topic := range t.Outputs(u.cfg.Unit.Stage) {
		out = append(out, Output{Topic: topic, Partitions: p.pinned.Partitions[topic]})
	}
	return out
}

// Output is a topic that gets END on each of its partitions.
type Output struct {
	Topic      string
	Partitions int32
}

// String is <topic>x<partitions>.
func (o Output) String() string { return fmt.Sprintf("%sx%d", o.Topic, o.Partitions) }
