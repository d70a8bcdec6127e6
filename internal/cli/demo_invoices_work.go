package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/invoices"
)

func (a *app) demoInvoicesOrders() *cobra.Command {
	var s invoices.Seed
	cmd := &cobra.Command{
		Use:     "orders",
		Short:   "Print made-up orders as CSV",
		Example: "  quiesce demo invoices orders --customers 100 > orders.csv",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.WithDefaults().Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			return invoices.WriteOrders(a.out, s)
		},
	}
	seedFlags(cmd, &s)
	return cmd
}

func (a *app) demoInvoicesType() *cobra.Command {
	return &cobra.Command{
		Use:     "type",
		Short:   "Print the demo's job type file",
		Example: "  quiesce demo invoices type > invoices.yaml",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			a.printf("%s", invoices.JobTypeFile)
			return nil
		},
	}
}

func (a *app) demoInvoicesWork() *cobra.Command {
	var c connection
	var cfg invoices.ServiceConfig
	cmd := &cobra.Command{
		Use:   "work NAME",
		Short: "Run one worker of the demo as a process of its own: prepare, split, render or report",
		Long: `Run one worker of the demo as a process of its own: prepare, split, render or report. The workers of a deployment share
the folder --out.`,
		Example: "  quiesce demo invoices work render --out ./november --smtp mail.example.com:587 --bootstrap-server kafka-1:9092",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := c.validate(cmd); err != nil {
				return err
			}
			cfg.Name, cfg.Bootstrap, cfg.Prefix, cfg.Options, cfg.Log = names[0], c.bootstrap, c.prefix, c.auth(), a.log
			if err := cfg.Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			a.printf("running: worker %s\n", strings.Join(names, ""))
			return invoices.Service(cmd.Context(), cfg)
		},
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&cfg.Out, "out", "", "folder that all workers share")
	mailFlags(cmd, &cfg.SMTP.Addr, &cfg.SMTP.From, &cfg.SMTP.Plain)
	f.Lookup("smtp").Usage = "mail server, host:port; needed by render"
	f.IntVar(&cfg.Concurrency, "workers", 8, "sub-jobs that it works on at once")
	f.StringVar(&cfg.InstanceID, "instance-id", "", "a name that is stable over restarts and unique: a restart then moves no partitions")
	f.BoolVar(&cfg.Reverse, "reverse", false, "split: list the customers backwards, to see which of two lists wins")
	f.IntVar(&cfg.KillAfter, "kill-after", 0, "end as kill -9 does: split after so many sub-jobs, render after so many mails, before the last receipt")
	return cmd
}
