package codecs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxID   = 128
	idRule  = "1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit"
	maxText = 1024 // bytes of a reason, a label's value, a reporter
)

// ValidID reports whether s may name a batch, run, job, customer, stage, queue, topology or job type. kind is the word
// that the error starts with.
func ValidID(kind, s string) error {
	if isID(s) {
		return nil
	}
	return fmt.Errorf("%s id %q: %s", kind, clip([]byte(s)), idRule)
}

func isID(s string) bool {
	if s == "" || len(s) > maxID || !alphanumeric(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !alphanumeric(c) && strings.IndexByte("._@=+-", c) < 0 {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
}

// isTopic says whether s may name a Kafka topic.
func isTopic(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 249 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// ValidTaskID reports whether s may be the string id of a task: 1 to 256 bytes of UTF-8.
func ValidTaskID(s string) error {
	if s != "" && len(s) <= 256 && utf8.ValidString(s) {
		return nil
	}
	return fmt.Errorf("task id %q: 1 to 256 bytes of UTF-8", clip([]byte(s)))
}
