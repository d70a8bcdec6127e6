package rules

import "strings"

// SkipReasons are the reasons for which a test may be skipped: what it needs, and the command that runs it.
var SkipReasons = []string{
	"needs Apache Kafka: make test-kafka",
	"needs Apache Kafka that it may kill: make test-kafka without BOOTSTRAP",
	"needs Chromium in PATH: make test where it is installed",
	"takes minutes: make test-long",
}

// exception lets files below a folder, or one file, breach a rule.
type exception struct{ rule, where, reason string }

var exceptions = []exception{
	{"only mains import the command line", "internal/binary", "tests the binary; without the import, go test would not see changes in it"},
	{"goka stays in its adapter", "internal/bench", "a contender: plain goka, to compare with"},
}

// used counts the exceptions that a file needed.
var used = map[exception]int{}

func allowed(rule string, f *File) bool {
	for _, e := range exceptions {
		if e.rule == rule && (f.Path == e.where || strings.HasPrefix(f.Path, e.where+"/")) {
			used[e]++
			return true
		}
	}
	return false
}
