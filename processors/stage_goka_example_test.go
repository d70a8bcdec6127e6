package processors_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/stage"
	"github.com/quiesce/quiesce/topology"
)

// text is a codec of strings.
type text struct{}

func (text) Encode(v any) ([]byte, error) { return []byte(v.(string)), nil }
func (text) Decode(b []byte) (any, error) { return string(b), nil }

// A stage as a goka processor group with a table: for each word the set of lines that it is in. A set may take the same
// line twice, so a record that is handled again changes nothing.
func ExampleNewStageGroup() {
	topo, err := topology.Load([]byte(`
topology: words
version: 1
source: lines
topics: {lines: {partitions: 4}}
stages:
  index: {in: [lines], group: words.index, client: goka, table: true}
`), "markers")
	if err != nil {
		log.Fatal(err)
	}
	group, err := processors.NewStageGroup(processors.StageGroupConfig{
		Stage:  stage.Config{Topology: topo, Stage: "index", Bootstrap: "localhost:9092"},
		Inputs: map[string]processors.Codec{"lines": text{}},
		Table:  text{},
		Callback: func(ctx processors.Context, value any) {
			lines, _ := ctx.Value().(string)
			if line := value.(string); !strings.Contains(lines, line+"\n") {
				ctx.SetValue(lines + line + "\n")
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = group.Run // until its context ends; NewStageView reads the table
	fmt.Println("ready to run")
	// Output: ready to run
}
