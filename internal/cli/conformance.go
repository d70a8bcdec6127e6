package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/conformance"
	scripts "github.com/quiesce/quiesce/testdata/conformance"
)

func (a *app) conformanceCommand() *cobra.Command {
	var c connection
	var list bool
	var queue string
	cmd := &cobra.Command{
		Use:   "conformance [ID...]",
		Short: "Check a running deployment against faults that users of comparable systems reported",
		Long: `Check a running deployment against faults that users of comparable systems reported: each script sends control records and
compares what comes out. Batches and jobs have ids of their own; nothing else of the deployment is touched.

Scripts about jobs need the queue named with --queue: it exists, and nobody works on it, because the scripts are its workers.
A script whose queue or role the deployment does not have is not run, and says so.`,
		Example: `  quiesce conformance --list
  quiesce dev --queues conformance     # then, beside it:
  quiesce conformance
  quiesce conformance --bootstrap-server kafka-1:9092 C18 C33`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			all, err := conformance.Load(scripts.FS)
			if err != nil {
				return err
			}
			if all, err = choose(cmd, all, ids); err != nil {
				return err
			}
			if list {
				for _, s := range all {
					a.printf("%s  %s (%s)\n", s.ID, s.Title, s.Source)
				}
				return nil
			}
			if err := c.validate(cmd); err != nil {
				return err
			}
			return a.conformance(cmd, &c, queue, all)
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&queue, "queue", conformance.DefaultQueue, "queue for the tasks of scripts about jobs")
	cmd.Flags().BoolVar(&list, "list", false, "print the scripts and do nothing")
	a.jsonFlag(cmd)
	return cmd
}

// choose returns the scripts with these ids, all without any.
func choose(cmd *cobra.Command, all []conformance.Script, ids []string) ([]conformance.Script, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var out []conformance.Script
	for _, id := range ids {
		i := slices.IndexFunc(all, func(s conformance.Script) bool { return s.ID == id })
		if i < 0 {
			return nil, usage(cmd, "no script %q; see --list", id)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func (a *app) conformance(cmd *cobra.Command, c *connection, queue string, all []conformance.Script) error {
	cfg := conformance.Config{Bootstrap: c.bootstrap, Prefix: c.prefix, Unique: strings.ToLower(ulid.Make().String()), Client: c.auth(), Queue: queue}
	failed := 0
	for _, s := range all {
		r, err := conformance.Run(cmd.Context(), cfg, s)
		if err != nil {
			return err
		}
		if !r.Passed && len(r.Absent) == 0 {
			failed++
		}
		if a.json {
			if err := a.printJSON(r); err != nil {
				return err
			}
			continue
		}
		verdict := "ok     "
		switch {
		case len(r.Absent) > 0:
			verdict = "NOT RUN"
		case !r.Passed:
			verdict = "FAILED "
		}
		a.printf("%s %s  %s\n", verdict, r.ID, r.Title)
		for _, m := range r.Absent {
			a.printf("          no %s here\n", m)
		}
		for _, f := range r.Faults {
			a.printf("          %s\n", f)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d scripts failed", failed, len(all))
	}
	return nil
}
