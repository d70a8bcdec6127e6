package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

func (a *app) workerCommand() *cobra.Command {
	var c connection
	var w worker.Config
	var command, split string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Work off a queue with a command: a process a task",
		Long: `Work off a queue with a command, until interrupted: a process a task, several at once. The command is given to sh -c. The
payload of the task is its stdin, its stdout the result. Exit code 0 is ok, 10 the task is skipped, 20 it failed and is
not tried again, anything else or a signal a failed attempt; the last line on stderr is the reason. Its environment:

  QUIESCE_TASK_ID BATCH RUN ROUND INDEX JOB STEP JOB_TYPE CUSTOMER ATTEMPT KIND CONTENT_TYPE REFERENCE
  (each with the prefix QUIESCE_TASK_)

--split is for the queue of a splitter: each line on stdout is the JSON of one task. A task may run more than once: its
side effects should be idempotent by batch, run and index. The first interrupt lets running tasks end; a second one stops
them.`,
		Example: `  quiesce worker --queue invoices.render --exec './render.sh' --concurrency 8
  quiesce worker --queue invoices.split --split 'jq -c .orders[]'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(cmd); err != nil {
				return err
			}
			if (command == "") == (split == "") {
				return usage(cmd, "name one of --exec and --split")
			}
			if command != "" {
				w.Handler = worker.Exec("sh", "-c", command)
			} else {
				w.Splitter = worker.ExecSplitter("sh", "-c", split)
			}
			if err := codecs.ValidID("queue", w.Queue); err != nil {
				return usage(cmd, "--queue: %w", err)
			}
			w.Bootstrap, w.Prefix, w.Options, w.Log = strings.Join(c.bootstrap, ","), c.prefix, c.auth(), a.log
			if err := w.WithDefaults().Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			a.printf("running: worker of queue %s, %d at once\n", w.Queue, w.WithDefaults().Concurrency)
			return worker.Run(cmd.Context(), w)
		},
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&w.Queue, "queue", "", "the queue")
	f.StringVar(&command, "exec", "", "command that runs a task")
	f.StringVar(&split, "split", "", "command that lists the tasks of a fan-out step")
	f.IntVar(&w.Concurrency, "concurrency", 16, "tasks at once")
	f.DurationVar(&w.DrainTimeout, "drain-timeout", 30*time.Second, "how long an interrupt waits for running tasks")
	return cmd
}
