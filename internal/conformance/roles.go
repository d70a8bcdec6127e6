package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// roles are those that a script needs.
func (s *Script) roles() []string {
	need := map[string]bool{codecs.GroupController: true}
	for i := range s.Steps {
		st := &s.Steps[i]
		if topicOf(st.Send) == codecs.TopicJobs && st.Send != "" {
			need[codecs.GroupWorkflow] = true
		}
		if st.Take > 0 && strings.Contains(st.Of, ".") {
			need[codecs.GroupDispatcher] = true
		}
	}
	for i := range s.Expect {
		if s.Expect[i].Deliveries != nil {
			need[codecs.GroupNotifier] = true
		}
	}
	return keys(need)
}

func (s *Script) needs(role string) bool { return slices.Contains(s.roles(), role) }

// absent returns what the script needs and what is not there: roles without a running member, the queue. The controller is
// not asked for: a deployment without one fails its scripts.
func (r *runner) absent(ctx context.Context, adm *kadm.Client) (out []string, err error) {
	for _, role := range r.script.roles() {
		if role == codecs.GroupController {
			continue
		}
		group := codecs.Group(r.cfg.Prefix, role)
		described, err := adm.DescribeGroups(ctx, group)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return nil, fmt.Errorf("members of group %s: %w", group, err)
		}
		if len(described[group].Members) == 0 {
			out = append(out, "role "+role)
		}
	}
	if !r.script.needs(codecs.GroupWorkflow) {
		return out, nil
	}
	work := topology.WorkTopic(r.cfg.Prefix, r.cfg.Queue)
	found, err := adm.ListTopics(ctx, work)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", work, err)
	}
	if !found.Has(work) {
		out = append(out, "queue "+r.cfg.Queue)
	}
	return out, nil
}
