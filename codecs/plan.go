package codecs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Plan is what a batch fixed at START for every stage that meets it: its mode, its topology, its feeders and the
// partition count of every topic. It travels in the header quiesce-mode of data records and END markers, so that a
// stage needs no look-up and a topic that grows changes nothing for the batches that are open:
//
//	quiesce-mode: <mode>;<topology>@<version>;<feeders>;<topic>=<partitions>,<topic>=<partitions>...
//	quiesce-mode: markers;go-index@1;1;asts=4,digests=4,paths=4
//
// Absent means ledger: the stage reports every task, and takes the counts that the topics have now.
type Plan struct {
	Mode       string
	Topology   string
	Version    uint32
	Feeders    uint32
	Partitions map[string]int32
}

// String is the header's value; topics are in order of their names.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s;%s@%d;%d;", p.Mode, p.Topology, p.Version, p.Feeders)
	for i, topic := range slices.Sorted(maps.Keys(p.Partitions)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%d", topic, p.Partitions[topic])
	}
	return b.String()
}

// ParsePlan reads what String prints.
func ParsePlan(s string) (*Plan, error) {
	f := strings.Split(s, ";")
	if len(f) != 4 {
		return nil, planError(s, "not mode;topology@version;feeders;topic=partitions,...")
	}
	at := strings.LastIndexByte(f[1], '@')
	if !isID(f[0]) || at < 0 || !isID(f[1][:at]) {
		return nil, planError(s, "mode or topology")
	}
	version, err1 := strconv.ParseUint(f[1][at+1:], 10, 32)
	feeders, err2 := strconv.ParseUint(f[2], 10, 32)
	if err1 != nil || err2 != nil || feeders == 0 || feeders > MaxFeeders {
		return nil, planError(s, "version or feeders")
	}
	p := &Plan{Mode: f[0], Topology: f[1][:at], Version: uint32(version), Feeders: uint32(feeders),
		Partitions: map[string]int32{}}
	for _, pair := range strings.Split(f[3], ",") {
		topic, count, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseInt(count, 10, 32)
		if err != nil || n <= 0 || !isTopic(topic) {
			return nil, planError(s, "topic=partitions")
		}
		p.Partitions[topic] = int32(n)
	}
	return p, nil
}

func planError(s, what string) error {
	return fmt.Errorf("%s %q: %s", HeaderMode, clip([]byte(s)), what)
}
