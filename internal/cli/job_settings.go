package cli

import (
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/node"
	"github.com/quiesce/quiesce/topology"
)

// jobSettings are what a deployment knows about jobs. Every process of a deployment is given the same.
type jobSettings struct {
	files       []string
	queues      []string
	partitions  int32
	key         string
	perCustomer int
}

const (
	keyJob      = "job"
	keyCustomer = "customer"
)

func (s *jobSettings) flags(cmd *cobra.Command, partitions int32) {
	s.queueFlags(cmd, partitions)
	f := cmd.Flags()
	f.StringVar(&s.key, "job-key", keyJob, "job, or customer: the jobs of a customer are kept together; chosen once per deployment")
	f.IntVar(&s.perCustomer, "jobs-per-customer", 0, "jobs of a customer that run at once, the others wait; needs --job-key customer (default: any number)")
}

// queueFlags are those that decide which queues there are.
func (s *jobSettings) queueFlags(cmd *cobra.Command, partitions int32) {
	s.key = keyJob
	f := cmd.Flags()
	f.StringSliceVar(&s.files, "jobs", nil, "job type files: jobs can be started by their names, their queues are created")
	f.StringSliceVar(&s.queues, "queues", nil, "queues that no job type names, or that have a partition count of their own: NAME or NAME=PARTITIONS")
	f.Int32Var(&s.partitions, "queue-partitions", partitions, "partitions of the queues where they have to be created: the most workers of a queue")
}

// load reads the job type files.
func (s *jobSettings) load(cmd *cobra.Command) (node.Jobs, error) {
	out := node.Jobs{QueuePartitions: s.partitions, CustomerKeys: s.key == keyCustomer, PerCustomer: s.perCustomer}
	if s.key != keyJob && s.key != keyCustomer {
		return out, usage(cmd, "--job-key %q: job or customer", s.key)
	}
	for _, name := range s.files {
		t, err := loadJobType(cmd, name)
		if err != nil {
			return out, err
		}
		out.Types = append(out.Types, t)
	}
	for _, text := range s.queues {
		name, count, counted := strings.Cut(text, "=")
		q := topology.Queue{Name: name}
		if counted {
			n, err := strconv.ParseInt(count, 10, 32)
			if err != nil || n < 1 {
				return out, usage(cmd, "--queues %q: want NAME or NAME=PARTITIONS", text)
			}
			q.Partitions = int32(n)
		}
		out.Queues = append(out.Queues, q)
	}
	return out, nil
}

// loadJobType reads a job type file that a command needs; whatever is wrong with it is a usage error.
func loadJobType(cmd *cobra.Command, name string) (*topology.JobType, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(cmd, "job type: %v", err)
	}
	t, err := topology.LoadJobType(b)
	if err != nil {
		return nil, usage(cmd, "job type %s:\n%v", name, err)
	}
	return t, nil
}
