package invoices

import (
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"os"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Config of a run in one process.
type Config struct {
	// Orders is the file of orders. Default: made up from Seed.
	Orders string
	// Seed says which orders to make up.
	Seed Seed
	// Job is the job's id. Default november.
	Job string
	// Out is the folder for what the job leaves. Default: a temporary one, removed at the end.
	Out string
	// Workers is how many sub-jobs are worked on at once. Default 8.
	Workers int
	// SMTP takes the invoices. Default: a sink in this process.
	SMTP notify.SMTP
	// Busy makes the sink refuse every so manieth mail once. Default 100.
	Busy int
	// Manager is the mail address that is told when the job has ended. Default manager@example.com with the sink, else
	// nobody.
	Manager string
	// Listen is the sidecar's address. Default: a free port of 127.0.0.1.
	Listen string
	// Dir keeps local state. Default: a temporary folder, removed at the end.
	Dir string
	// Keep leaves everything running after the result until the context ends.
	Keep bool
	// Watch gets what can be looked at while it runs: once when everything is up, before the job is requested, then some
	// times a second. May be nil.
	Watch func(Progress)
	// Done gets the result before Keep begins to wait. May be nil.
	Done func(*Result)
	// Log gets what goes wrong. Default: discarded.
	Log *slog.Logger
}

// WithDefaults fills in the documented defaults, the folders excepted.
func (c Config) WithDefaults() Config {
	c.Seed = c.Seed.WithDefaults()
	if c.Job == "" {
		c.Job = "november"
	}
	if c.Workers == 0 {
		c.Workers = 8
	}
	if c.Busy == 0 {
		c.Busy = 100
	}
	if c.SMTP.Addr == "" && c.Manager == "" {
		c.Manager = "manager@example.com"
	}
	if c.SMTP.From == "" {
		c.SMTP.From = "invoices@example.com"
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Watch == nil {
		c.Watch = func(Progress) {}
	}
	if c.Done == nil {
		c.Done = func(*Result) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every setting that cannot work, files of an earlier job of that name included: what they say would be
// taken for this one's.
func (c Config) Validate() error {
	errs := []error{c.Seed.Validate(), codecs.ValidID("job", c.Job), notify.Config{SMTP: c.SMTP}.Validate()}
	if c.Workers < 1 || c.Busy < 1 {
		errs = append(errs, errors.New("a number of workers or of mails that is not positive"))
	}
	if c.Manager != "" {
		if _, err := mail.ParseAddress(c.Manager); err != nil {
			errs = append(errs, fmt.Errorf("manager %q: %w", c.Manager, err))
		}
	}
	if c.Orders != "" {
		if st, err := os.Stat(c.Orders); err != nil || !st.Mode().IsRegular() {
			errs = append(errs, fmt.Errorf("orders %s: not a file that can be read", c.Orders))
		}
	}
	if c.Out != "" {
		if _, err := os.Stat(string(JobFolder(c.Out, c.Job))); err == nil {
			errs = append(errs, fmt.Errorf("folder %s: there is a job of that name in it", JobFolder(c.Out, c.Job)))
		}
	}
	return errors.Join(errs...)
}

// Progress is how far a run is.
type Progress struct {
	Sidecar string // address
	Broker  string // address
	Sink    string // address of the mail server
	Folder  Folder
	Job     *api.Job // nil before it is known
	Notes   int      // notifications that came
	Mails   int      // that the sink took
}
