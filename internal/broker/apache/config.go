//go:build unix

package apache

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// Config says which cluster to start. The zero value is one node.
type Config struct {
	// Nodes is 1 or 3. Default 1.
	Nodes int
	// Settings are broker settings, over the package's own (see properties). Default none.
	Settings map[string]string
	// Heap is the most memory of a node's Java heap, as -Xmx takes it. Default "512m".
	Heap string
	// StartTimeout is how long nodes may take until they answer. Default 90 s.
	StartTimeout time.Duration
}

// WithDefaults returns c with every unset field at its documented default.
func (c Config) WithDefaults() Config {
	if c.Nodes == 0 {
		c.Nodes = 1
	}
	if c.Heap == "" {
		c.Heap = "512m"
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = 90 * time.Second
	}
	return c
}

// Validate reports every field that cannot work.
func (c Config) Validate() error {
	var errs []error
	if c.Nodes != 1 && c.Nodes != 3 {
		errs = append(errs, fmt.Errorf("a cluster of %d nodes: 1 or 3", c.Nodes))
	}
	if c.StartTimeout < 0 {
		errs = append(errs, fmt.Errorf("start time-out %s is negative", c.StartTimeout))
	}
	return errors.Join(errs...)
}

// ports of one node.
type ports struct{ broker, controller int }

// freePorts returns ports for n nodes that nobody listened on a moment ago.
func freePorts(n int) ([]ports, error) {
	var all []ports
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	free := func() (int, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("free port: %w", err)
		}
		held = append(held, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	for range n {
		b, err := free()
		if err != nil {
			return nil, err
		}
		c, err := free()
		if err != nil {
			return nil, err
		}
		all = append(all, ports{broker: b, controller: c})
	}
	return all, nil
}

// properties is the configuration file of node i (from 0) of a cluster.
func properties(cfg Config, all []ports, i int, dataDir string) string {
	replicas, inSync := "1", "1"
	if cfg.Nodes == 3 {
		replicas, inSync = "3", "2"
	}
	var voters []string
	for j, p := range all {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", j+1, p.controller))
	}
	plaintext := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", all[i].broker)
	settings := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        fmt.Sprint(i + 1),
		"controller.quorum.voters":       strings.Join(voters, ","),
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "PLAINTEXT",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"listeners":                      fmt.Sprintf("%s,CONTROLLER://127.0.0.1:%d", plaintext, all[i].controller),
		"advertised.listeners":           plaintext,
		"log.dirs":                       dataDir,

		"auto.create.topics.enable":  "false", // a misspelled topic is an error
		"default.replication.factor": replicas,
		"min.insync.replicas":        inSync,
		// A killed node is fenced, and let in again, after this long.
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
		// Followers give a paused leader up.
		"replica.socket.timeout.ms":    "2000",
		"controller.socket.timeout.ms": "2000",
		// A test's only member waits for nobody.
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "1000",
		// The default, 128 MiB, is a quarter of the heap.
		"log.cleaner.dedupe.buffer.size": "16777216",
	}
	// Internal topics: four partitions instead of 50, which take long to create.
	for _, topic := range []string{"offsets.topic", "transaction.state.log", "share.coordinator.state.topic"} {
		settings[topic+".num.partitions"] = "4"
		settings[topic+".replication.factor"] = replicas
	}
	settings["transaction.state.log.min.isr"] = inSync
	settings["share.coordinator.state.topic.min.isr"] = inSync
	maps.Copy(settings, cfg.Settings)

	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s=%s\n", k, settings[k])
	}
	return b.String()
}
