package job

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

func (s *step) emit(m codecs.Message) {
	if m.Trace == "" {
		m.Trace = s.ev.Traceparent
	}
	s.out = append(s.out, m)
}

// event announces a change of the job, or of step i when i >= 0.
func (s *step) event(name string, i int) {
	r := s.r
	d := &codecs.JobEvent{
		Job: r.Job, Customer: r.Customer, Type: r.Definition.Name, Version: r.Definition.Version,
		State: r.State, Reason: r.Reason, Round: r.Round, Labels: r.Labels, Notify: r.Notify,
		StartedAt: r.StartedAt, EndedAt: r.EndedAt,
	}
	id := ""
	if i >= 0 {
		st := r.Steps[i]
		spec := r.Definition.Steps[i]
		d.Step, d.StepState, d.Reason, d.Batch, d.Round = spec.Name, st.State, st.Reason, st.Batch, st.Round
		d.StartedAt, d.EndedAt, d.Attempts = st.StartedAt, st.EndedAt, st.Attempts
		d.Queue, d.Timing = queueOf(spec), s.timing
		if st.Counts != nil {
			d.Counts = proto.Clone(st.Counts).(*codecs.Counts)
		}
	} else if ended(r.State) {
		id = fmt.Sprintf("%s/%s/%d/terminal", r.Job, r.Run, r.Round)
	}
	s.emit(codecs.Message{Topic: codecs.TopicEvents, Key: r.Job, Type: name, ID: id, Data: d, Due: true})
}

func queueOf(spec *codecs.StepSpec) string {
	if spec.Task != nil {
		return spec.Task.Queue
	}
	return spec.FanOut.Queue
}

// toBatch sends an absolute command to a batch.
func (s *step) toBatch(batch, verb string, args *codecs.CommandArgs) {
	s.emit(codecs.Message{Topic: codecs.TopicControl, Key: batch, Type: codecs.TypeBatchCommand, Due: true,
		Data: &codecs.BatchCommand{Id: s.commandID(verb, batch), Verb: verb, Args: args}})
}

// commandID names a command that this step sends: the same for every replay of it.
func (s *step) commandID(verb, to string) string {
	return fmt.Sprintf("%s/%d/%d/%s/%s", printable(s.r.Key), s.ev.Partition, s.off, verb, printable(to))
}

// deadLetter reports an input that was refused.
func deadLetter(ev *codecs.Event, off int64, reason string) codecs.Message {
	return codecs.Message{Topic: codecs.TopicDeadLetter, Key: ev.Key, Type: codecs.TypeDeadLetter, Due: true,
		Trace: ev.Traceparent, Data: &codecs.DeadLetter{Reason: ev.Type + ": " + reason, Topic: codecs.TopicJobs, Partition: ev.Partition, Offset: off}}
}

// printable shows a key with its 0x00 as a slash.
func printable(key string) string { return strings.ReplaceAll(key, "\x00", "/") }
