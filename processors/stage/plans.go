package stage

import (
	"sync"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// pinnedPlan is the part of a batch's plan that a wrapper needs.
type pinnedPlan struct {
	mode       string
	partitions map[string]int32
}

var ledgerPlan = &pinnedPlan{mode: topology.ModeLedger}

// planCache parses each text once. Batches of one topology share their plan, so there are few.
type planCache struct {
	mu    sync.RWMutex
	plans map[string]*pinnedPlan
}

// maxPlans bounds the cache: it is emptied when foreign records would make it grow.
const maxPlans = 1000

// get returns the plan of a header's text. A text that cannot be read counts as ledger: reporting every task is never
// wrong.
func (c *planCache) get(text string) *pinnedPlan {
	if text == "" {
		return ledgerPlan
	}
	c.mu.RLock()
	p := c.plans[text]
	c.mu.RUnlock()
	if p != nil {
		return p
	}
	p = ledgerPlan
	if parsed, err := codecs.ParsePlan(text); err == nil {
		p = &pinnedPlan{mode: parsed.Mode, partitions: parsed.Partitions}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plans == nil || len(c.plans) >= maxPlans {
		c.plans = map[string]*pinnedPlan{}
	}
	c.plans[text] = p
	return p
}
