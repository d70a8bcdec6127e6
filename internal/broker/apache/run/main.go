//go:build unix

// Command run runs a command beside Apache Kafka: run [-bootstrap host:port] [-nodes 1|3] -- command args...
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/quiesce/quiesce/internal/broker/apache"
)

func main() {
	bootstrap := flag.String("bootstrap", "", "use the broker at this address instead of starting one")
	nodes := flag.Int("nodes", 1, "nodes to start: 1 or 3")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := apache.Run(ctx, os.Stderr, *bootstrap, apache.Config{Nodes: *nodes}, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	os.Exit(code)
}
