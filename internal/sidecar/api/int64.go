package api

import (
	"fmt"
	"strconv"
)

// Int64 is a 64-bit number: a string in JSON, read from a string or a number.
type Int64 int64

// MarshalJSON prints a string.
func (n Int64) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 22), '"')
	return append(strconv.AppendInt(b, int64(n), 10), '"'), nil
}

// UnmarshalJSON reads "12" and 12; null leaves the number as it is.
func (n *Int64) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	s := string(b)
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("64-bit number %s: %w", b, err)
	}
	*n = Int64(v)
	return nil
}
