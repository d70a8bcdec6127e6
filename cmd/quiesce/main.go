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
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
