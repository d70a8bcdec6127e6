// Command steplog prints a line for each step that ends: one more consumer of the events log, which nothing else knows of.
//
//	go run ./docs/examples/steplog localhost:9092
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: steplog BOOTSTRAP [PREFIX]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1], append(os.Args, "quiesce")[2])
	interrupted := ctx.Err() != nil
	stop()
	if err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
