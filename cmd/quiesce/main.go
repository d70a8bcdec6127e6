// Command quiesce tells when every piece of a batch that is scattered over Kafka services has been processed.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/quiesce/quiesce/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
