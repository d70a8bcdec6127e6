package topology

import (
	"slices"

	"github.com/quiesce/quiesce/codecs"
)

// Check says what a topology is checked for.
type Check struct {
	Mode       string     // "" = what holds in every mode
	Prefix     string     // of the deployment, whose names are reserved; default codecs.DefaultPrefix
	Partitions Partitions // real counts; nil = the declared ones
}

// Validate reports everything that is wrong with the topology in a mode ("" = in every mode). The error is Faults.
func (t *Topology) Validate(mode string) error { return t.Check(Check{Mode: mode}) }

// Check is Validate with all that can be known.
func (t *Topology) Check(c Check) error { return t.check(c, true).err() }

// check judges reachability only of a whole topology: where a part could not be read, what follows from its absence is
// no fault of its own.
func (t *Topology) check(c Check, whole bool) Faults {
	if c.Prefix == "" {
		c.Prefix = codecs.DefaultPrefix
	}
	if c.Partitions == nil {
		c.Partitions = Partitions{}
		for name, topic := range t.Topics {
			c.Partitions[name] = topic.Partitions
		}
	}
	v := &validator{t: t, Check: c}
	v.names()
	v.references()
	v.groups()
	if whole {
		v.orphans()
	}
	v.partitions()
	v.mode()
	return v.faults
}

// validator collects the faults of one topology.
type validator struct {
	Check
	t      *Topology
	faults Faults
}

// references: what stages name must be declared, once, and not be read and written by the same stage.
func (v *validator) references() {
	t := v.t
	if t.Source == "" {
		v.faults.add("source", "missing: the topic that feeders write")
	} else if _, ok := t.Topics[t.Source]; !ok {
		v.faults.add("source", "topic %q is not declared", t.Source)
	}
	if len(t.Stages) == 0 {
		v.faults.add("stages", "there is no stage")
	}
	for _, name := range sortedKeys(t.Stages) {
		s, path := t.Stages[name], join("stages", name)
		if len(s.In) == 0 {
			v.faults.add(path+".in", "a stage reads at least one topic")
		}
		v.list(path+".in", s.In)
		v.list(path+".out", s.Out)
		for i, topic := range s.Out {
			if slices.Contains(s.In, topic) {
				v.faults.add(at(path+".out", i), "the stage reads topic %q too", topic)
			}
		}
	}
}

func (v *validator) list(path string, topics []string) {
	for i, topic := range topics {
		if _, ok := v.t.Topics[topic]; !ok {
			v.faults.add(at(path, i), "topic %q is not declared", topic)
		}
		if slices.Index(topics, topic) < i {
			v.faults.add(at(path, i), "topic %q is there twice", topic)
		}
	}
}

// groups: each consumer is known, and has its group for itself: two stages in one group would share out the partitions
// of both among them.
func (v *validator) groups() {
	owner := map[string]string{}
	for _, name := range sortedKeys(v.t.Stages) {
		s, path := v.t.Stages[name], join("stages", name)
		if s.Group == "" {
			v.faults.add(path+".group", "missing: the consumer group that reads for the stage")
		} else if other, ok := owner[s.Group]; ok {
			v.faults.add(path+".group", "group %q belongs to stage %s already", s.Group, other)
		} else {
			owner[s.Group] = name
		}
		switch s.ClientOf() {
		case ClientLibrary, ClientGoka, ClientForeign:
		default:
			v.faults.add(path+".client", "unknown client %q; known are %s, %s, %s",
				s.Client, ClientLibrary, ClientGoka, ClientForeign)
		}
		if s.Table && s.ClientOf() != ClientGoka {
			v.faults.add(path+".table", "only a stage with client: goka has a table")
		}
	}
}

// orphans: every topic is written and read, every stage and each of its inputs is reached from the source.
func (v *validator) orphans() {
	t := v.t
	reached := t.downstream(t.Source)
	written := map[string]bool{t.Source: true}
	for _, s := range reached {
		for _, topic := range t.Outputs(s) {
			written[topic] = true
		}
	}
	for _, name := range sortedKeys(t.Topics) {
		v.orphanTopic(name, join("topics", name))
	}
	for _, name := range sortedKeys(t.Stages) {
		s, path := t.Stages[name], join("stages", name)
		if len(s.In) > 0 && !slices.Contains(reached, name) {
			v.faults.add(path, "nothing from the source %q reaches the stage", t.Source)
			continue
		}
		for i, topic := range s.In {
			if _, ok := t.Topics[topic]; ok && !written[topic] && len(t.Writers(topic)) > 0 {
				v.faults.add(at(path+".in", i), "nothing from the source %q reaches topic %q", t.Source, topic)
			}
		}
	}
}

func (v *validator) orphanTopic(name, path string) {
	t := v.t
	writers, readers := t.Writers(name), t.Readers(name)
	outside := t.outside(name)
	switch {
	case t.Topics[name].Sink && name == t.Source:
		v.faults.add(path+".sink", "the source is inside the batch")
	case outside && len(readers) > 0:
		v.faults.add(path, "its records are outside the batch (sink), but stage %s reads it", readers[0])
	case t.sunk(name) && len(writers) > 0:
		v.faults.add(path, "stage %s sends records of the batch to it, a sink stage others", writers[0])
	case len(writers) == 0 && !outside && name != t.Source:
		v.faults.add(path, "nobody writes it")
	case len(readers) == 0 && !outside:
		v.faults.add(path, "nobody reads it (declare sink: true if its records are outside the batch)")
	}
}

// partitions: counts are possible, and a goka stage has inputs of one count.
func (v *validator) partitions() {
	for _, name := range sortedKeys(v.t.Topics) {
		if n := v.t.Topics[name].Partitions; n < 0 || n > MaxPartitions {
			v.faults.add(join("topics", name)+".partitions", "%d partitions, at most %d are possible", n, MaxPartitions)
		}
	}
	for _, name := range sortedKeys(v.t.Stages) {
		s := v.t.Stages[name]
		if s.ClientOf() != ClientGoka {
			continue
		}
		first := ""
		for _, topic := range s.In {
			n := v.Partitions[topic]
			if first == "" && n > 0 {
				first = topic
			}
			if n > 0 && n != v.Partitions[first] {
				v.faults.add(join("stages", name)+".in", "goka needs inputs of equal partition counts: %q has %d, %q has %d",
					first, v.Partitions[first], topic, n)
			}
		}
	}
}

// MaxPartitions is the highest partition count that a declaration may ask for.
const MaxPartitions = 10000
