package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/invoices"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

func (a *app) demoInvoices() *cobra.Command {
	var cfg invoices.Config
	cmd := &cobra.Command{
		Use:   "invoices",
		Short: "A job in three steps: orders are read, each customer gets a PDF invoice by mail, a report is written",
		Long: `A job in three steps over an embedded broker: a file of orders is read, each customer gets a PDF invoice by mail (one
sub-job each), and a report is written. Prints progress, statistics and notifications, and checks itself against a plain
loop over the same file. Without --orders they are made up, some of them broken on purpose. Without --smtp a mail server in
this process takes the mails and throws them away.

Exits like wait: 3 when customers have no invoice, 1 when the check fails.`,
		Example: `  quiesce demo invoices
  quiesce demo invoices --orders orders.csv --out ./november
  quiesce demo invoices --customers 500 --keep --listen 127.0.0.1:7878      # leaves the dashboard up`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.WithDefaults().Validate(); err != nil {
				return usage(cmd, "%w", err)
			}
			return a.invoices(cmd, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Orders, "orders", "", "file of orders, CSV (default: made up)")
	seedFlags(cmd, &cfg.Seed)
	f.StringVar(&cfg.Job, "job", "november", "id of the job")
	f.StringVar(&cfg.Out, "out", "", "folder for invoices and report (default: a temporary one, removed at the end)")
	f.IntVar(&cfg.Workers, "workers", 8, "sub-jobs that are worked on at once")
	mailFlags(cmd, &cfg.SMTP.Addr, &cfg.SMTP.From, &cfg.SMTP.Plain)
	f.IntVar(&cfg.Busy, "busy", 100, "the mail server in this process refuses every so manieth mail once")
	f.StringVar(&cfg.Manager, "manager", "", "mail address that is told the end (default: one of the mail server in this process)")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "address of the sidecar")
	f.BoolVar(&cfg.Keep, "keep", false, "leave everything running after the result, until interrupted")
	a.jsonFlag(cmd)
	cmd.AddCommand(a.demoInvoicesOrders(), a.demoInvoicesType(), a.demoInvoicesWork())
	return cmd
}

func seedFlags(cmd *cobra.Command, s *invoices.Seed) {
	f := cmd.Flags()
	f.IntVar(&s.Customers, "customers", 10_000, "customers to make up")
	f.IntVar(&s.Orders, "orders-each", 7, "orders of a customer to make up, at most")
	f.Float64Var(&s.Broken, "broken", 0.01, "share of customers to make up that are wrong on purpose")
	f.Uint64Var(&s.Number, "seed", 1, "number of what is made up: the same gives the same orders")
}

func mailFlags(cmd *cobra.Command, addr, from *string, plain *bool) {
	f := cmd.Flags()
	f.StringVar(addr, "smtp", "", "mail server, host:port (default: one in this process)")
	f.StringVar(from, "from", "invoices@example.com", "sender of the mails")
	f.BoolVar(plain, "smtp-plain", false, "the mail server may be talked to without TLS")
}

func (a *app) invoices(cmd *cobra.Command, cfg invoices.Config) error {
	bars := newBars(a.err)
	var line *bar
	cfg.Log = a.log
	last := ""
	cfg.Watch = func(p invoices.Progress) {
		if p.Job == nil {
			a.notef("broker %s, %s\nmail server %s, files in %s\n", p.Broker, sidecarText(p.Sidecar), p.Sink, p.Folder)
			line = bars.add("invoices", 0)
			return
		}
		steps, done, total := stepsText(p.Job)
		line.set(done, total)
		if steps != last && !bars.visible() {
			a.notef("%s\n", steps)
		}
		last = steps
	}
	cfg.Done = func(r *invoices.Result) {
		bars.finish(line)
		if a.json {
			_ = a.printJSON(r)
			return
		}
		r.Print(a.out)
		if cfg.Keep {
			a.printf("everything is left running: interrupt to end it\n")
		}
	}
	r, err := invoices.Run(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	return checked(client.ExitOfJob(&api.Job{State: r.State}), r.Differences)
}

// stepsText shows the states of a job's steps, with tenths of the sub-jobs, and how many of these are done.
func stepsText(j *api.Job) (text string, done, total int64) {
	var steps []string
	for _, s := range j.Steps {
		text := s.Step + " " + strings.ReplaceAll(s.State, "_", " ")
		if s.Counts != nil {
			done, total = int64(s.Counts.Ended()), int64(s.Counts.Total)
			text += fmt.Sprintf(" (%d %%)", 10*(10*done/max(total, 1)))
		}
		steps = append(steps, text)
	}
	return "job " + j.Job + " " + strings.ReplaceAll(j.State, "_", " ") + ": " + strings.Join(steps, ", "), done, total
}
