package batch

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// progressEvery is the shortest time in ms between two progress events.
const progressEvery = 1000

var terminalTypes = map[codecs.State_Code]string{
	codecs.State_completed:               codecs.TypeBatchCompleted,
	codecs.State_completed_with_failures: codecs.TypeBatchCompletedWithFailures,
	codecs.State_failed:                  codecs.TypeBatchFailed,
	codecs.State_cancelled:               codecs.TypeBatchCancelled,
	codecs.State_expired:                 codecs.TypeBatchExpired,
	codecs.State_inconsistent:            codecs.TypeBatchInconsistent,
}

// end ends the round. It is called once for each.
func (s *step) end(state codecs.State_Code, reason string) {
	s.p.PreviousState, s.p.State, s.p.Reason, s.p.EndedAt = s.p.State, state, reason, s.p.Now
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicEvents, Key: s.ev.Key, Type: terminalTypes[state],
		ID: codecs.TerminalID(s.ev.Key, s.p.Run, s.p.Round), Data: s.event(reason), Due: true})
	if o := s.p.Owner; o.GetJob() != "" {
		key := o.Key
		if key == "" {
			key = o.Job
		}
		s.tellOwner(key)
	}
	for _, w := range s.p.Watchers {
		s.tellOwner(w)
	}
	s.p.Watchers = nil
}

// tellOwner tells a job's row how the batch ended.
func (s *step) tellOwner(key string) {
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicJobs, Key: key, Type: codecs.TypeBatchEnded, Due: true,
		Data: &codecs.BatchEnded{Batch: s.ev.Key, Run: s.p.Run, Round: s.p.Round, Step: s.p.Owner.GetStep(), State: s.p.State,
			Counts: s.Counts(), Reason: s.p.Reason}})
}

// emit sends a lifecycle event that observers wait for.
func (s *step) emit(typ, reason string) {
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicEvents, Key: s.ev.Key, Type: typ, Data: s.event(reason), Due: true})
}

func (s *step) emitItems(typ string, items []*codecs.ReportItem) {
	e := s.event("")
	e.Items = items
	s.out = append(s.out, codecs.Message{Topic: codecs.TopicEvents, Key: s.ev.Key, Type: typ, Data: e})
}

func (s *step) event(reason string) *codecs.BatchEvent {
	e := &codecs.BatchEvent{Run: s.p.Run, Round: s.p.Round, State: s.p.State, PreviousState: s.p.PreviousState, Counts: s.Counts(), Reason: reason,
		Position: strconv.Itoa(int(s.ev.Partition)) + ":" + strconv.FormatInt(s.offset, 10), Empty: s.sealed() && s.p.Total == 0,
		Owner: s.p.Owner, Labels: s.p.Labels, Notify: s.p.Notify, StartedAt: s.p.StartedAt, DecidedAt: s.p.Now}
	if s.p.Audit != nil {
		e.Audit = proto.Clone(s.p.Audit).(*codecs.Audit)
	}
	e.Rate, e.Eta = s.Rate()
	return e
}

// Rate is tasks a second since the start, and when the rest will be done at that rate (ms; 0 = not known).
func (r *Row) Rate() (rate float64, eta int64) {
	took := r.p.LastProgressAt - r.p.StartedAt
	c := r.Counts()
	n := ended(c)
	if took <= 0 || n == 0 {
		return 0, 0
	}
	rate = float64(n) / float64(took) * 1000
	if r.active() && r.sealed() && c.Total > n {
		eta = r.p.LastProgressAt + int64(float64(c.Total-n)/rate*1000)
	}
	return rate, eta
}

// progress tells how far an open batch is, at most once a second.
func (s *step) progress() {
	if s.p.LastProgressAt == s.p.Now && s.p.Now-s.p.ProgressAt >= progressEvery {
		s.p.ProgressAt = s.p.Now
		s.out = append(s.out, codecs.Message{Topic: codecs.TopicEvents, Key: s.ev.Key, Type: codecs.TypeBatchProgress, Data: s.event("")})
	}
}

func (r *Row) status() *codecs.BatchStatus {
	return &codecs.BatchStatus{Run: r.p.Run, State: r.p.State, Paused: r.p.Paused, Deadlines: r.p.Deadlines, Policy: r.p.Policy,
		Round: r.p.Round, Topology: r.p.Topology, Mode: r.p.Mode}
}

// tellStatus writes the status when it is another one.
func (s *step) tellStatus(before look) {
	if s.p.Run != "" && s.look() != before {
		s.out = append(s.out, codecs.Message{Topic: codecs.TopicStatus, Key: s.ev.Key, Type: codecs.TypeBatchStatus, Data: s.status()})
	}
}

// audit is the counters of what changes nothing.
func (s *step) audit() *codecs.Audit {
	if s.p.Audit == nil {
		s.p.Audit = &codecs.Audit{}
	}
	return s.p.Audit
}
