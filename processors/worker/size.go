package worker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Load is a step whose workers are to be counted.
type Load struct {
	Tasks    int
	Run      time.Duration // of one attempt
	Deadline time.Duration // for all of them, from the first release
	Retries  float64       // share of attempts that fail and are tried again
	Crashes  float64       // share of attempts that take their worker down
	Backoff  time.Duration // before another attempt. Default 1 s
	Outage   time.Duration // until a crashed worker's task is with another one, and a new worker is there. Default 60 s
	PerTask  time.Duration // what a worker needs between two tasks. Default 10 ms
}

// Plan is how many workers (handlers at once, over all processes) a load needs.
type Plan struct {
	Workers    int
	LowerBound int // without faults and overhead: nothing less can do it
	Partitions int32
}

// String is one line for people.
func (p Plan) String() string {
	return fmt.Sprintf("%d workers (lower bound without faults %d), %d partitions", p.Workers, p.LowerBound, p.Partitions)
}

// risk is the chance that a plan is too small, roughly.
const risk = 1e-4

// Size counts workers. The work is that of every attempt, what fluctuates included (4 standard deviations); from the
// deadline goes the tail: the last tasks to start may fail several times in a row, until the chance that one does so once
// more is below 1 in 10,000. A queue needs a partition for each process at least; the plan has one for each worker,
// rounded up to a power of two.
func Size(l Load) (Plan, error) {
	if l.Backoff == 0 {
		l.Backoff = time.Second
	}
	if l.Outage == 0 {
		l.Outage = time.Minute
	}
	if l.PerTask == 0 {
		l.PerTask = 10 * time.Millisecond
	}
	again := l.Retries + l.Crashes
	switch {
	case l.Tasks < 0 || l.Run <= 0 || l.Deadline <= 0 || l.Backoff < 0 || l.Outage < 0 || l.PerTask < 0:
		return Plan{}, errors.New("size: tasks, run and deadline must be positive")
	case l.Retries < 0 || l.Crashes < 0 || again >= 1:
		return Plan{}, fmt.Errorf("size: retries %g and crashes %g are shares whose sum is below 1", l.Retries, l.Crashes)
	case l.Run > l.Deadline:
		return Plan{}, fmt.Errorf("size: one task takes %v, the deadline is %v", l.Run, l.Deadline)
	}
	n := float64(l.Tasks)
	rounds := math.Floor(float64(l.Deadline) / float64(l.Run))
	plan := Plan{LowerBound: int(math.Ceil(n / rounds))}
	attempts := n/(1-again) + 4*math.Sqrt(n*again)/(1-again)
	crashes := n*l.Crashes/(1-again) + 4*math.Sqrt(n*l.Crashes)
	work := attempts*float64(l.Run+l.PerTask) + crashes*float64(l.Outage)
	for w := max(plan.LowerBound, 1); ; w++ {
		left := float64(l.Deadline - l.tail(w, again))
		if left <= 0 {
			return Plan{}, fmt.Errorf("size: %d tasks of %v with %.3g of the attempts failing have no room for another attempt within %v",
				l.Tasks, l.Run, again, l.Deadline)
		}
		// A worker finishes whole attempts.
		if left >= float64(l.Run) && float64(w)*left >= work || w >= l.Tasks {
			plan.Workers = min(w, max(l.Tasks, 0))
			break
		}
	}
	plan.Partitions = 1
	for plan.Partitions < int32(min(plan.Workers, 1<<14)) {
		plan.Partitions *= 2
	}
	return plan, nil
}

// tail is how long the last tasks may take once every task has been started: one attempt, and further ones as long as
// it is not unlikely that one of w running tasks needs them.
func (l Load) tail(w int, again float64) time.Duration {
	t := l.Run + l.PerTask
	for chance := float64(w) * again; chance > risk; chance *= again {
		t += l.Run + l.PerTask + max(l.Backoff, time.Duration(float64(l.Outage)*min(l.Crashes/max(again, 1e-9)*4, 1)))
	}
	return t
}
