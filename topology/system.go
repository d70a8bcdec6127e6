package topology

import (
	"strconv"

	"github.com/quiesce/quiesce/codecs"
)

// System returns the topics of a deployment with default settings.
func System(prefix string, partitions int32) []Spec {
	return Settings{Prefix: prefix, Partitions: partitions}.System()
}

// System returns the deployment's own topics. Topics that a key must find on the same partition have the same count:
// a table and the topic it is folded from, and the compacted topics that its owner writes.
func (s Settings) System() []Spec {
	s = s.WithDefaults()
	name := func(topic string) string { return codecs.Topic(s.Prefix, topic) }
	table := func(role string) string { return codecs.Table(s.Prefix, role) }
	control, jobs, events := name(codecs.TopicControl), name(codecs.TopicJobs), name(codecs.TopicEvents)
	specs := []Spec{
		s.log(control, control, s.Retention),
		s.compacted(table(codecs.GroupController), control, s.MaxRow),
		s.compacted(name(codecs.TopicStatus), control, s.MaxRecord),
		s.compacted(name(codecs.TopicOutcomes), control, s.MaxRecord),
		s.log(name(codecs.TopicDispatch), control, s.Retention),
		s.log(name(codecs.TopicReportsTx), "", s.Retention),
		s.compacted(name(codecs.TopicManifest), "", s.MaxRow),
		s.compacted(name(codecs.TopicUnits), "", s.MaxRecord),
		s.log(jobs, jobs, s.Retention),
		s.compacted(table(codecs.GroupWorkflow), jobs, s.MaxRow),
		s.log(events, events, s.Retention),
		s.compacted(table(codecs.GroupStats), events, s.MaxRow),
		s.compacted(table(codecs.GroupNotifier), events, s.MaxRow),
	}
	for _, q := range s.Queues {
		for _, topic := range q.Topics(s.Prefix) {
			spec := s.log(topic, "", s.Retention)
			if topic == WorkTopic(s.Prefix, q.Name) {
				spec.Partitions = q.Partitions
			}
			spec.Configs[SegmentBytes] = strconv.Itoa(queueSegmentBytes)
			specs = append(specs, spec)
		}
	}
	dead := s.log(name(codecs.TopicDeadLetter), "", s.DeadLetterRetention)
	dead.AtLeast[RetentionMs] = minDeadLetter.Milliseconds()
	most := int64(s.LargestSource + DeadLetterMargin)
	dead.Configs[MaxMessageBytes], dead.AtLeast[MaxMessageBytes] = strconv.FormatInt(most, 10), most
	dead.Margin = DeadLetterMargin
	return append(specs, dead)
}

// Specs returns the topics of topologies, tables of goka stages included, by name. A topic that two of them declare
// must have the same count in both; the error is Faults.
func Specs(topologies ...*Topology) ([]Spec, error) { return Settings{}.Specs(topologies...) }

// Specs is the function of that name, with the deployment's replication and compaction.
func (s Settings) Specs(topologies ...*Topology) ([]Spec, error) {
	s = s.WithDefaults()
	all := map[string]Spec{}
	owner := map[string]string{}
	var faults Faults
	for _, t := range topologies {
		for _, spec := range s.user(t) {
			had, ok := all[spec.Name]
			if ok && had.Partitions != 0 && spec.Partitions != 0 && had.Partitions != spec.Partitions {
				faults.add(join("topics", spec.Name), "%d partitions in topology %s, %d in %s",
					had.Partitions, owner[spec.Name], spec.Partitions, t.Name)
			}
			if !ok || had.Partitions == 0 {
				all[spec.Name], owner[spec.Name] = spec, t.Name
			}
		}
	}
	specs := make([]Spec, 0, len(all))
	for _, name := range sortedKeys(all) {
		specs = append(specs, all[name])
	}
	return specs, faults.err()
}

func (s Settings) user(t *Topology) []Spec {
	var specs []Spec
	for _, name := range sortedKeys(t.Topics) {
		spec := Spec{Name: name, Partitions: t.Topics[name].Partitions, Replication: s.Replication}
		spec.Configs = map[string]string{CleanupPolicy: CleanupDelete} // compaction would take tasks and END markers away
		specs = append(specs, spec)
	}
	for _, name := range sortedKeys(t.Stages) {
		stage := t.Stages[name]
		if !stage.Table || len(stage.In) == 0 {
			continue
		}
		spec := s.compacted(stage.Group+"-table", stage.In[0], s.MaxRow)
		spec.Partitions = t.Topics[stage.In[0]].Partitions
		delete(spec.Configs, TimestampType) // the user's rows keep the user's times
		specs = append(specs, spec)
	}
	return specs
}
