package replay

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Compare compares the rows with those that Print wrote once. It returns the lines that differ, in order: "- " is only
// expected, "+ " is only there.
func (s *State) Compare(expected io.Reader) ([]string, error) {
	var want []string
	r := bufio.NewReader(expected)
	for {
		line, err := r.ReadString('\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			want = append(want, line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read expected rows: %w", err)
		}
	}
	var got []string
	for _, row := range s.Rows() {
		got = append(got, row.String())
	}
	return mergeLines(want, got), nil
}

// mergeLines lists what is in one of two sets of lines only. A changed line is next to its former self where the keys
// agree.
func mergeLines(want, got []string) []string {
	slices.Sort(want)
	slices.Sort(got)
	var diff []string
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0] < got[0]:
			diff, want = append(diff, "- "+want[0]), want[1:]
		case len(want) == 0 || got[0] < want[0]:
			diff, got = append(diff, "+ "+got[0]), got[1:]
		default:
			want, got = want[1:], got[1:]
		}
	}
	return diff
}
