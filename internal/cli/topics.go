package cli

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/topics"
	"github.com/quiesce/quiesce/topology"
)

func (a *app) topicsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "topics",
		Short: "Plan, create and verify the topics of a deployment (never alters one that exists)",
		Example: `  quiesce topics plan --topology pipeline.yaml
  quiesce topics apply --bootstrap-server kafka-1:9092 --replication 3`,
	}, a.topicsPlan(), a.topicsApply(), a.topicsDiff())
}

// topicSettings are what the commands on topics share.
type topicSettings struct {
	connection
	jobs        jobSettings
	topologies  []string
	partitions  int32
	replication int16
	timeout     time.Duration
}

func (s *topicSettings) flags(cmd *cobra.Command) {
	s.connection.flags(cmd)
	s.jobs.queueFlags(cmd, 128)
	f := cmd.Flags()
	f.StringSliceVar(&s.topologies, "topology", nil, "topology files whose topics belong to the deployment")
	f.Int32Var(&s.partitions, "partitions", 0, "partitions of the deployment's own topics (default 8; it can never change)")
	f.Int16Var(&s.replication, "replication", -1, "replicas of each topic (-1: the brokers' default)")
	f.DurationVar(&s.timeout, "timeout", time.Minute, "how long to try")
}

// with runs fn with the topics' specs and a manager.
func (s *topicSettings) with(cmd *cobra.Command, fn func(context.Context, *topics.Manager, []topology.Spec) error) error {
	if err := s.validate(cmd); err != nil {
		return err
	}
	_, _, specs, err := s.specs(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), s.timeout)
	defer cancel()
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	m, err := topics.New(topics.Config{Client: client})
	if err != nil {
		return err
	}
	return fn(ctx, m, specs)
}

// specs are the deployment's own topics and those of the topologies.
func (s *topicSettings) specs(cmd *cobra.Command) (topology.Settings, []*topology.Topology, []topology.Spec, error) {
	settings := topology.Settings{Prefix: s.prefix, Partitions: s.partitions, Replication: s.replication}
	jobs, err := s.jobs.load(cmd)
	if err != nil {
		return settings, nil, nil, err
	}
	settings.Queues = jobs.AllQueues()
	var loaded []*topology.Topology
	for _, name := range s.topologies {
		t, err := loadTopology(cmd, name, "")
		if err != nil {
			return settings, nil, nil, err
		}
		loaded = append(loaded, t)
	}
	if err := settings.Validate(); err != nil {
		return settings, nil, nil, usage(cmd, "%w", err)
	}
	specs, err := settings.Specs(loaded...)
	if err != nil {
		return settings, nil, nil, usage(cmd, "%w", err)
	}
	return settings, loaded, append(settings.System(), specs...), nil
}

func (a *app) topicsPlan() *cobra.Command {
	var s topicSettings
	var acls bool
	cmd := &cobra.Command{
		Use:     "plan",
		Short:   "Print what apply would create and what differs; changes nothing",
		Example: "  quiesce topics plan --bootstrap-server kafka-1:9092 --topology pipeline.yaml --json",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if acls {
				return a.printACLs(cmd, &s)
			}
			return s.with(cmd, func(ctx context.Context, m *topics.Manager, specs []topology.Spec) error {
				plan, err := m.Plan(ctx, specs)
				if err != nil {
					return err
				}
				return a.printPlan(plan)
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&acls, "acls", false, "print the least ACLs that each role needs instead; asks no broker")
	a.jsonFlag(cmd)
	return cmd
}

// printACLs prints what each role has to be allowed.
func (a *app) printACLs(cmd *cobra.Command, s *topicSettings) error {
	if err := s.validate(cmd); err != nil {
		return err
	}
	settings, loaded, _, err := s.specs(cmd)
	if err != nil {
		return err
	}
	roles := topics.Roles(settings, loaded...)
	if !a.json {
		a.printf("%s", topics.ACLText(roles))
		return nil
	}
	for _, r := range roles {
		if err := a.printJSON(map[string]any{"role": r.Role, "acls": r.ACLs()}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printPlan(plan topics.Plan) error {
	if a.json {
		return a.printJSON(plan)
	}
	for _, s := range plan.Missing {
		a.printf("create %s: %d partitions%s\n", s.Name, s.Partitions, configText(s.Configs))
	}
	for _, d := range plan.Differences {
		a.printf("differs %s\n", d)
		if fix := d.Fix(); fix != "" {
			a.printf("        %s\n", fix)
		}
	}
	a.printf("%d to create, %d differences, %d as they should be\n", len(plan.Missing), len(plan.Differences), plan.Same)
	return nil
}

func configText(configs map[string]string) string {
	names := make([]string, 0, len(configs))
	for k := range configs {
		names = append(names, k)
	}
	sort.Strings(names)
	s := ""
	for _, k := range names {
		s += " " + k + "=" + configs[k]
	}
	return s
}

func (a *app) topicsApply() *cobra.Command {
	var s topicSettings
	cmd := &cobra.Command{
		Use:     "apply",
		Short:   "Create what is missing, then verify; fails where a topic that exists breaks a guarantee",
		Example: "  quiesce topics apply --bootstrap-server kafka-1:9092 --replication 3 --topology pipeline.yaml",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.with(cmd, func(ctx context.Context, m *topics.Manager, specs []topology.Spec) error {
				plan, err := m.Apply(ctx, specs)
				if err != nil {
					return fmt.Errorf("apply topics: %w", err)
				}
				if a.json {
					return a.printJSON(plan)
				}
				for _, t := range plan.Missing {
					a.printf("created %s with %d partitions\n", t.Name, t.Partitions)
				}
				a.printf("%d created, %d were there, all verified\n", len(plan.Missing), len(specs)-len(plan.Missing))
				return nil
			})
		},
	}
	s.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) topicsDiff() *cobra.Command {
	var s topicSettings
	cmd := &cobra.Command{
		Use:     "diff",
		Short:   "Verify: exit 1 if a topic is missing or breaks a guarantee",
		Example: "  quiesce topics diff --bootstrap-server kafka-1:9092 --topology pipeline.yaml",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.with(cmd, func(ctx context.Context, m *topics.Manager, specs []topology.Spec) error {
				plan, err := m.Plan(ctx, specs)
				if err != nil {
					return err
				}
				if err := a.printPlan(plan); err != nil {
					return err
				}
				if n := len(plan.Missing) + len(plan.Harmful()); n > 0 {
					return fmt.Errorf("%d mismatches", n)
				}
				return nil
			})
		},
	}
	s.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}
