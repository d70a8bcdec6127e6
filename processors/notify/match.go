package notify

import (
	"path"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// names says whether an event name is one of those that the subscription is for.
func (s Subscription) names(event string) bool {
	ok, err := path.Match(s.Event, event)
	return ok && err == nil
}

// facts are what a subscription can ask about an event.
type facts struct {
	labels  map[string]string
	jobType string
	own     []*codecs.Subscription
}

func factsOf(ev *codecs.Event) facts {
	switch d := ev.Data.(type) {
	case *codecs.JobRequested:
		return facts{d.Labels, d.Type, d.Notify}
	case *codecs.JobEvent:
		return facts{d.Labels, d.Type, d.Notify}
	case *codecs.BatchEvent:
		return facts{d.Labels, d.Owner.GetType(), d.Notify}
	case *codecs.SubjobsCompleted:
		return facts{jobType: d.Owner.GetType()}
	}
	return facts{}
}

// matches says whether an event is one that the subscription is for.
func (s Subscription) matches(event string, f facts) bool {
	if !s.names(event) || s.JobType != "" && s.JobType != f.jobType {
		return false
	}
	for k, v := range s.Labels {
		if f.labels[k] != v {
			return false
		}
	}
	return true
}

// matching returns the subscriptions that an event is for, those of the configuration first, one for each destination,
// and how many of the event's own were refused.
func (m *Machine) matching(ev *codecs.Event) (to []Subscription, refused uint64) {
	f := factsOf(ev)
	seen := map[string]bool{}
	add := func(s Subscription) {
		if d := s.destination(); s.matches(ev.Type, f) && !seen[d] {
			seen[d] = true
			to = append(to, s)
		}
	}
	for _, s := range m.cfg.Subscriptions {
		add(s)
	}
	for i, o := range f.own {
		s := Subscription{Event: o.GetEvent(), URL: o.GetUrl(), Template: o.GetTemplate(), Secret: o.GetSecret()}
		if i >= maxOwn || s.valid() != nil || strings.HasPrefix(s.URL, "exec:") || len(s.Template)+len(s.Secret) > maxURL {
			refused++
			continue
		}
		add(s)
	}
	return to, refused
}
