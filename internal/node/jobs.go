package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/job"
	"github.com/quiesce/quiesce/topology"
)

// Jobs is what a deployment knows about jobs. Every node of a deployment has the same.
type Jobs struct {
	// Types are the job types that a request can name; their queues are created. A request may bring a definition of its
	// own, whose queues must be among those of the deployment. Default: none.
	Types []*topology.JobType
	// Queues have settings of their own, or belong to no known job type. Default: none.
	Queues []topology.Queue
	// QueuePartitions is the count of the queues' topics where they have to be created: as many workers can take tasks at
	// once. Default: that of topology.Queue, 128.
	QueuePartitions int32
	// CustomerKeys keeps the jobs of a customer together, under the key customer 0x00 job. Chosen once per deployment.
	CustomerKeys bool
	// PerCustomer is how many jobs of a customer run at once; it needs CustomerKeys. Default 0: any number.
	PerCustomer int
	// Retention is the time from the end of a job to its collection, where its type names none. Default: that of package
	// job, 7 days.
	Retention time.Duration
}

// AllQueues returns those of the job types and the configured ones, by name.
func (j Jobs) AllQueues() []topology.Queue {
	all := slices.Clone(j.Queues)
	for _, q := range topology.Queues(j.Types...) {
		if !slices.ContainsFunc(all, func(had topology.Queue) bool { return had.Name == q.Name }) {
			all = append(all, q)
		}
	}
	for i := range all {
		if all[i].Partitions == 0 && all[i].Name != topology.NotifyQueue {
			all[i].Partitions = j.QueuePartitions // 0 = the default
		}
	}
	return all
}

// queue returns the settings of a queue.
func (j Jobs) queue(name string) topology.Queue {
	for _, q := range j.AllQueues() {
		if q.Name == name {
			return q.WithDefaults()
		}
	}
	return topology.Queue{Name: name}.WithDefaults()
}

// names are those of all queues; not nil.
func (j Jobs) names() []string {
	names := []string{}
	for _, q := range j.AllQueues() {
		names = append(names, q.Name)
	}
	return names
}

// definitions returns the job types as they are pinned at a job's start.
func (j Jobs) definitions() ([]*codecs.JobType, error) {
	var all []*codecs.JobType
	for _, t := range j.Types {
		d, err := t.Definition()
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// machine makes the workflow's machine.
func (j Jobs) machine() (*job.Machine, error) {
	types, err := j.definitions()
	if err != nil {
		return nil, err
	}
	return job.New(job.Config{Types: types, Queues: j.names(), MaxPerCust: j.PerCustomer, RetentionMs: j.Retention.Milliseconds()})
}

func (j Jobs) validate() error {
	var errs []error
	if j.PerCustomer < 0 || j.Retention < 0 || j.QueuePartitions < 0 {
		errs = append(errs, errors.New("jobs: a negative number or duration"))
	}
	if j.PerCustomer > 0 && !j.CustomerKeys {
		errs = append(errs, fmt.Errorf("jobs: a limit of %d per customer needs the jobs keyed by customer", j.PerCustomer))
	}
	if _, err := j.machine(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
