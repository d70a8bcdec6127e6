package topology

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

var topicPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// ValidTopic reports whether Kafka takes s as the name of a topic.
func ValidTopic(s string) error {
	if s == "." || s == ".." || !topicPattern.MatchString(s) {
		return fmt.Errorf("topic name %q: 1 to 249 of A-Z a-z 0-9 . _ -", s)
	}
	return nil
}

// Reserved says whether a topic or group name belongs to the deployment itself.
func Reserved(prefix, name string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+".")
}

// names: every name is possible and free.
func (v *validator) names() {
	t := v.t
	if err := codecs.ValidID("topology", t.Name); err != nil {
		v.faults.add("topology", "%v", err)
	}
	if t.Version == 0 {
		v.faults.add("version", "missing: a whole number from 1")
	}
	metric := map[string]string{}
	for _, name := range sortedKeys(t.Topics) {
		path := join("topics", name)
		if err := ValidTopic(name); err != nil {
			v.faults.add(path, "%v", err)
		}
		v.reserved(path, "topic", name)
		// Brokers refuse a topic whose name differs from another's in . and _ only: their metrics would collide.
		flat := strings.ReplaceAll(name, ".", "_")
		if other, ok := metric[flat]; ok {
			v.faults.add(path, "brokers cannot tell it from topic %q (. and _ are one)", other)
		}
		metric[flat] = name
	}
	for _, name := range sortedKeys(t.Stages) {
		s, path := t.Stages[name], join("stages", name)
		if err := codecs.ValidID("stage", name); err != nil {
			v.faults.add(path, "%v", err)
		}
		if name == FeederStage {
			v.faults.add(path, "the name %q stands for the feeders", name)
		}
		if s.Group == "" {
			continue
		}
		if err := codecs.ValidID("group", s.Group); err != nil {
			v.faults.add(path+".group", "%v", err)
		} else if err := ValidTopic(s.Group + "-table"); s.Table && err != nil {
			v.faults.add(path+".group", "names the topic of the stage's table: %v", err)
		}
		v.reserved(path+".group", "group", s.Group)
	}
}

func (v *validator) reserved(path, kind, name string) {
	if Reserved(v.Prefix, name) {
		v.faults.add(path, "%s names that begin with %q are the deployment's own", kind, v.Prefix+".")
	}
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
