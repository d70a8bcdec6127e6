package job

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// requested creates the job. Commands and results that came before it were refused: a job begins with its request.
func (s *step) requested(d *codecs.JobRequested) {
	r := s.r
	if r.Definition != nil {
		if r.RequestId == s.ev.ID {
			s.duplicate()
			return
		}
		s.reject(fmt.Sprintf("job %s exists already: %s", r.Job, r.State))
		return
	}
	def, err := s.m.definition(d)
	if err == nil {
		err = validRequest(s.r, d)
	}
	if err == nil && s.m.perCust > 0 {
		if c, _ := jobOf(r.Key); c == "" {
			err = fmt.Errorf("a limit per customer is set: the record key must be customer 0x00 job")
		}
	}
	if err != nil {
		s.reject(err.Error())
		return
	}
	*r = codecs.JobRow{
		Format: rowFormat, Behaviour: behaviour, Job: r.Job, Key: r.Key, Customer: d.Customer,
		Definition: proto.Clone(def).(*codecs.JobType), Input: d.Input, Labels: d.Labels, Notify: d.Notify,
		State: codecs.JobState_waiting, Now: r.Now, RequestedAt: s.ev.Time, RequestId: s.ev.ID,
		Run: fmt.Sprintf("r%d.%d", s.ev.Partition, s.off), Version: 1, Priority: d.Priority, Round: 1,
		AwaitsBatches: d.AwaitBatches, AwaitsJobs: d.AwaitJobs,
	}
	r.Steps = make([]*codecs.StepRow, len(def.Steps))
	for i := range r.Steps {
		r.Steps[i] = &codecs.StepRow{State: codecs.StepState_pending, Round: 1}
	}
	s.emit(codecs.Message{Topic: codecs.TopicEvents, Key: r.Job, Type: codecs.TypeJobRequested, Due: true,
		Data: &codecs.JobRequested{Type: def.Name, Version: def.Version, Customer: d.Customer, Labels: d.Labels,
			AwaitBatches: d.AwaitBatches, AwaitJobs: d.AwaitJobs, Notify: d.Notify, Priority: d.Priority}})
	for _, b := range d.AwaitBatches {
		s.toBatch(b, "watch", &codecs.CommandArgs{Watcher: r.Key})
	}
	for _, j := range d.AwaitJobs {
		s.emit(codecs.Message{Topic: codecs.TopicJobs, Key: j, Type: codecs.TypeJobCommand, Due: true,
			Data: &codecs.JobCommand{Id: s.commandID("watch", j), Verb: verbWatch, Args: &codecs.JobCommandArgs{Reason: r.Key}}})
	}
	if s.m.perCust > 0 {
		r.AwaitsSlot = true
		s.toCustomer(ask)
	}
	s.advance()
}

// definition returns the pinned definition of a request: its own, or the known one of that type and version.
func (m *Machine) definition(d *codecs.JobRequested) (*codecs.JobType, error) {
	if def := d.Definition; def != nil {
		if d.Type != "" && d.Type != def.Name || d.Version != 0 && d.Version != def.Version {
			return nil, fmt.Errorf("/definition: is %s@%d, the request says %s@%d", def.Name, def.Version, d.Type, d.Version)
		}
		if err := validType(def); err != nil {
			return nil, fmt.Errorf("/definition: %w", err)
		}
		if err := m.knownQueues(def); err != nil {
			return nil, fmt.Errorf("/definition: %w", err)
		}
		return def, nil
	}
	k := d.Type
	if d.Version != 0 {
		k = typeKey(d.Type, d.Version)
	}
	if def := m.types[k]; def != nil {
		return def, nil
	}
	return nil, fmt.Errorf("/type: unknown job type %s", k)
}

// CheckRequest checks a request for the row of a key as the machine will, so that a writer can refuse what would end in the
// dead letter. A type without definition is not looked up. Each line of the error is one fault: the JSON pointer of the
// member of the request, a colon, and what is wrong.
func CheckRequest(key string, d *codecs.JobRequested) error {
	faults := []error{validRequest(&codecs.JobRow{Key: key}, d)}
	def := d.Definition
	if def == nil {
		return errors.Join(faults...)
	}
	if d.Type != def.Name || d.Version != def.Version {
		faults = append(faults, fmt.Errorf("/definition: is %s, the request says %s", typeKey(def.Name, def.Version), typeKey(d.Type, d.Version)))
	}
	if err := validType(def); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			faults = append(faults, errors.New(definitionFault(def, line)))
		}
	}
	return errors.Join(faults...)
}

// definitionFault points a fault of a definition into the request: steps are named there by their index.
func definitionFault(def *codecs.JobType, line string) string {
	if !strings.HasPrefix(line, "/") {
		return "/definition/name: " + line
	}
	for i, st := range def.Steps {
		at := "/steps/" + st.Name
		if rest, ok := strings.CutPrefix(line, at); ok && (strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "/")) {
			line = fmt.Sprintf("/steps/%d%s", i, rest)
			break
		}
	}
	return "/definition" + line
}

// validRequest checks what the row will carry.
func validRequest(r *codecs.JobRow, d *codecs.JobRequested) error {
	_, job := jobOf(r.Key)
	if err := codecs.ValidID("job", job); err != nil {
		return err
	}
	if len(job) > 64 {
		return fmt.Errorf("job id %q: at most 64 characters, so that the ids of its batches fit", job)
	}
	if d.Customer != "" {
		if err := codecs.ValidID("customer", d.Customer); err != nil {
			return fmt.Errorf("/customer: %w", err)
		}
	}
	if c, _ := jobOf(r.Key); c != "" && c != d.Customer {
		return fmt.Errorf("/customer: %q, the record key says %q", d.Customer, c)
	}
	if n := len(d.Input.GetData()); n > maxInline {
		return fmt.Errorf("/input: %d bytes by value, at most %d: give a reference", n, maxInline)
	}
	if len(d.Labels) > 64 || len(d.Notify) > 4 {
		return fmt.Errorf("/labels, /notify: at most 64 labels and 4 subscriptions")
	}
	if len(d.AwaitBatches)+len(d.AwaitJobs) > maxAwaits {
		return fmt.Errorf("/await_batches, /await_jobs: at most %d in all", maxAwaits)
	}
	for _, b := range d.AwaitBatches {
		if err := codecs.ValidID("batch", b); err != nil {
			return fmt.Errorf("/await_batches: %w", err)
		}
	}
	for _, k := range d.AwaitJobs {
		if _, j := jobOf(k); codecs.ValidID("job", j) != nil || k == r.Key {
			return fmt.Errorf("/await_jobs: %q", k)
		}
	}
	return nil
}

// reject answers a request that changes nothing: loudly, as a dead letter with the reason.
func (s *step) reject(reason string) {
	s.audit().Unexpected++
	s.emit(deadLetter(s.ev, s.off, reason))
}
