package topics

import (
	"slices"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// Access is what one role does with the brokers: what it reads and writes, and in which consumer groups.
type Access struct {
	Role     string
	Read     []string // topics
	Write    []string // topics
	Describe []string // topics whose offsets or settings it looks at, beyond those it reads or writes
	Groups   []string // consumer groups that it is a member of
	Watch    []string // consumer groups whose offsets it looks at
	Create   []string // topics that it creates
}

// Roles returns the access of every role of a deployment, and of the services of the topologies that it follows.
func Roles(s topology.Settings, topologies ...*topology.Topology) []Access {
	s = s.WithDefaults()
	r := roles{s}
	all := []Access{
		r.machine(codecs.GroupController, codecs.TopicControl,
			codecs.TopicStatus, codecs.TopicOutcomes, codecs.TopicDispatch, codecs.TopicEvents, codecs.TopicJobs),
		r.machine(codecs.GroupWorkflow, codecs.TopicJobs,
			codecs.TopicControl, codecs.TopicEvents, codecs.TopicManifest),
		r.machine(codecs.GroupStats, codecs.TopicEvents),
		r.notifier(),
		r.dispatcher(),
		{Role: "relay", Read: r.own(codecs.TopicReportsTx), Write: r.own(codecs.TopicControl, codecs.TopicDeadLetter),
			Groups: []string{codecs.Group(s.Prefix, "relay")}},
	}
	for _, q := range s.Queues {
		all = append(all, r.worker(q))
	}
	for _, t := range topologies {
		all = append(all, r.feeder(t))
		for _, name := range stageNames(t) {
			all = append(all, r.stage(t, name))
		}
	}
	all = append(all, r.sidecar(topologies), r.operator(topologies))
	for i := range all {
		all[i].tidy()
	}
	return all
}

type roles struct{ s topology.Settings }

// own returns the deployment's topics of those logical names.
func (r roles) own(names ...string) []string {
	topics := make([]string, len(names))
	for i, n := range names {
		topics[i] = codecs.Topic(r.s.Prefix, n)
	}
	return topics
}

// machine is a group with a table and one input, to which it also sends (nudges, re-routed records).
func (r roles) machine(role, input string, outputs ...string) Access {
	table := codecs.Table(r.s.Prefix, role)
	return Access{Role: role, Groups: []string{codecs.Group(r.s.Prefix, role)},
		Read: append(r.own(input), table), Write: append(r.own(append(outputs, input, codecs.TopicDeadLetter)...), table)}
}

func (r roles) notifier() Access {
	a := r.machine(codecs.GroupNotifier, codecs.TopicEvents)
	a.Write = append(a.Write, topology.WorkTopic(r.s.Prefix, topology.NotifyQueue))
	return a
}

func (r roles) dispatcher() Access {
	a := Access{Role: codecs.GroupDispatcher, Groups: []string{codecs.Group(r.s.Prefix, codecs.GroupDispatcher)},
		Read: r.own(codecs.TopicDispatch, codecs.TopicManifest), Write: r.own(codecs.TopicManifest, codecs.TopicDeadLetter)}
	for _, q := range r.s.Queues {
		a.Write = append(a.Write, topology.WorkTopic(r.s.Prefix, q.Name))
	}
	return a
}

// worker takes tasks of one queue, moves them between its tiers, splits, and reports.
func (r roles) worker(q topology.Queue) Access {
	queue := q.Topics(r.s.Prefix)
	group := topology.WorkTopic(r.s.Prefix, q.Name)
	return Access{Role: "worker " + q.Name, Groups: []string{group, group + ".retry"},
		Read:  append(r.own(codecs.TopicStatus), queue...),
		Write: append(r.own(codecs.TopicControl, codecs.TopicJobs, codecs.TopicManifest, codecs.TopicDeadLetter), queue...)}
}

func (r roles) feeder(t *topology.Topology) Access {
	return Access{Role: "feeder " + t.Name, Read: r.own(codecs.TopicStatus, codecs.TopicEvents),
		Write: append(r.own(codecs.TopicControl), t.Source), Describe: topicNames(t)}
}

func (r roles) stage(t *topology.Topology, name string) Access {
	s := t.Stages[name]
	a := Access{Role: "stage " + t.Name + "/" + name, Groups: []string{s.Group},
		Read: slices.Clone(s.In), Write: slices.Clone(s.Out)}
	if s.ClientOf() == topology.ClientForeign { // one record per task, in its transaction if it has one
		a.Write = append(a.Write, r.own(codecs.TopicControl, codecs.TopicReportsTx)...)
	} else {
		a.Read = append(a.Read, r.own(codecs.TopicStatus, codecs.TopicUnits)...)
		a.Write = append(a.Write, r.own(codecs.TopicControl, codecs.TopicUnits, codecs.TopicDeadLetter)...)
	}
	if s.Table {
		a.Read, a.Write = append(a.Read, s.Group+"-table"), append(a.Write, s.Group+"-table")
	}
	return a
}

// sidecar follows everything, explains what is missing from the users' topics, and passes commands on.
func (r roles) sidecar(topologies []*topology.Topology) Access {
	a := Access{Role: "sidecar", Write: r.own(codecs.TopicControl, codecs.TopicJobs)}
	for _, spec := range r.s.System() {
		a.Read = append(a.Read, spec.Name)
	}
	for _, role := range []string{codecs.GroupController, codecs.GroupWorkflow, codecs.GroupStats, codecs.GroupNotifier,
		codecs.GroupDispatcher} {
		a.Watch = append(a.Watch, codecs.Group(r.s.Prefix, role))
	}
	for _, q := range r.s.Queues {
		a.Watch = append(a.Watch, topology.WorkTopic(r.s.Prefix, q.Name))
	}
	for _, t := range topologies {
		a.Read = append(a.Read, topicNames(t)...)
		for _, name := range stageNames(t) {
			a.Watch = append(a.Watch, t.Stages[name].Group)
		}
	}
	return a
}

// operator runs `topics plan` and `topics apply`.
func (r roles) operator(topologies []*topology.Topology) Access {
	a := Access{Role: "operator"}
	users, _ := r.s.Specs(topologies...) // contradictions between topologies are Specs' to report
	for _, spec := range append(r.s.System(), users...) {
		a.Describe = append(a.Describe, spec.Name)
		if spec.Partitions > 0 || spec.With != "" {
			a.Create = append(a.Create, spec.Name)
		}
	}
	return a
}

func (a *Access) tidy() {
	for _, list := range []*[]string{&a.Read, &a.Write, &a.Describe, &a.Groups, &a.Watch, &a.Create} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

func stageNames(t *topology.Topology) []string { return sortedKeys(t.Stages) }

func topicNames(t *topology.Topology) []string { return sortedKeys(t.Topics) }
