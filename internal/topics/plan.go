package topics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quiesce/quiesce/topology"
)

// Plan is what stands between the brokers and the specs.
type Plan struct {
	Missing     []topology.Spec `json:"missing,omitempty"`     // to be created
	Differences []Difference    `json:"differences,omitempty"` // of topics that exist; by topic, then setting
	Same        int             `json:"same"`                  // topics that are as specified
}

// Difference is one setting of a topic that exists.
type Difference struct {
	Topic   string `json:"topic"`
	Setting string `json:"setting"` // partitions, replication, exists, or a Kafka topic setting
	Want    string `json:"want"`
	Have    string `json:"have"`
	Harmful bool   `json:"harmful"` // a guarantee depends on it
	Why     string `json:"why,omitempty"`
}

// String is one line.
func (d Difference) String() string {
	s := fmt.Sprintf("%s: %s is %s, should be %s", d.Topic, d.Setting, d.Have, d.Want)
	if d.Why != "" {
		s += " (" + d.Why + ")"
	}
	return s
}

// Fix is the command that changes the setting, "" if nothing can without moving to another topic.
func (d Difference) Fix() string {
	switch d.Setting {
	case settingPartitions, settingReplication, settingExists:
		return ""
	}
	return fmt.Sprintf("kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config %s=%s",
		d.Topic, d.Setting, d.Want)
}

// Plan compares the topics with the brokers. It changes nothing.
func (m *Manager) Plan(ctx context.Context, specs []topology.Spec) (Plan, error) {
	var plan Plan
	if len(specs) == 0 {
		return plan, nil
	}
	found, err := m.describe(ctx, specNames(specs)...)
	if err != nil {
		return plan, err
	}
	specs = resolveWith(specs, found)
	var exist []string
	for _, s := range specs {
		if _, ok := found[s.Name]; ok {
			exist = append(exist, s.Name)
		}
	}
	configs, err := m.configs(ctx, exist)
	if err != nil {
		return plan, err
	}
	for _, s := range specs {
		s = withMargin(s, configs)
		have, exists := found[s.Name]
		diffs := compare(s, have, configs[s.Name])
		switch {
		case exists && len(diffs) == 0:
			plan.Same++
		case exists:
			plan.Differences = append(plan.Differences, diffs...)
		case s.Partitions > 0:
			plan.Missing = append(plan.Missing, s)
		default:
			plan.Differences = append(plan.Differences, Difference{Topic: s.Name, Setting: settingExists, Want: "true",
				Have: "false", Harmful: true, Why: "no partition count is declared, so it must exist"})
		}
	}
	return plan, nil
}

// resolveWith gives a spec without a partition count that of the topic it goes with.
func resolveWith(specs []topology.Spec, found map[string]topic) []topology.Spec {
	specs = slices.Clone(specs)
	for i, s := range specs {
		if s.Partitions == 0 && s.With != "" && s.With != s.Name {
			specs[i].Partitions = found[s.With].partitions
		}
	}
	return specs
}

// withMargin raises what a dead-letter topic must accept to the largest record that any of the others really takes.
func withMargin(s topology.Spec, configs map[string]map[string]string) topology.Spec {
	if s.Margin == 0 {
		return s
	}
	need := s.AtLeast[topology.MaxMessageBytes]
	for name, have := range configs {
		if n, err := strconv.ParseInt(have[topology.MaxMessageBytes], 10, 64); err == nil && name != s.Name {
			need = max(need, n+s.Margin)
		}
	}
	if need > s.AtLeast[topology.MaxMessageBytes] {
		s.Configs, s.AtLeast = maps.Clone(s.Configs), maps.Clone(s.AtLeast)
		s.Configs[topology.MaxMessageBytes], s.AtLeast[topology.MaxMessageBytes] = strconv.FormatInt(need, 10), need
	}
	return s
}

// Harmful returns the differences on which a guarantee depends.
func (p Plan) Harmful() []Difference {
	return slices.DeleteFunc(slices.Clone(p.Differences), func(d Difference) bool { return !d.Harmful })
}

// Text renders the plan for people: + is created, ! must be changed, ~ differs harmlessly.
func (p Plan) Text() string {
	var b strings.Builder
	for _, s := range p.Missing {
		fmt.Fprintf(&b, "+ %s: %d partitions, %s\n", s.Name, s.Partitions, s.Configs[topology.CleanupPolicy])
	}
	for _, d := range p.Differences {
		mark := "~"
		if d.Harmful {
			mark = "!"
		}
		fmt.Fprintf(&b, "%s %s\n", mark, d)
		if fix := d.Fix(); fix != "" && d.Harmful {
			fmt.Fprintf(&b, "    %s\n", fix)
		}
	}
	fmt.Fprintf(&b, "%d to create, %d to change by hand, %d harmless differences, %d as specified\n",
		len(p.Missing), len(p.Harmful()), len(p.Differences)-len(p.Harmful()), p.Same)
	return b.String()
}
