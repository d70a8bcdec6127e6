package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/worker"
)

// DefaultQueue is where scripts about jobs let tasks go.
const DefaultQueue = "conformance"

// Config says which deployment to talk to.
type Config struct {
	Bootstrap []string
	Prefix    string
	// Unique makes the batch ids of this run differ from those of all others.
	Unique string
	// Client are more options of the client (TLS, SASL).
	Client []kgo.Opt
	// Patience bounds the wait for an event that a script awaits. Default 20 s.
	Patience time.Duration
	// Queue takes the tasks of scripts about jobs. It exists, the workflow knows it, and nobody else works on it.
	// Default DefaultQueue.
	Queue string
}

// WithDefaults returns the configuration with absent fields filled in.
func (c Config) WithDefaults() Config {
	if c.Patience == 0 {
		c.Patience = 20 * time.Second
	}
	if c.Queue == "" {
		c.Queue = DefaultQueue
	}
	return c
}

// Result is the answer of one script.
type Result struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Passed bool     `json:"passed"`
	Absent []string `json:"absent,omitempty"` // what it needs and is not there: the script was not run
	Faults []string `json:"faults,omitempty"`
}

// Run executes one script. The error is about the run itself (no broker, a bad script); what the deployment gets wrong
// is in the result.
func Run(ctx context.Context, cfg Config, s Script) (Result, error) {
	cfg = cfg.WithDefaults()
	r, err := open(ctx, cfg, s)
	if err != nil {
		return Result{}, fmt.Errorf("conformance %s: %w", s.ID, err)
	}
	defer r.client.Close()
	res := Result{ID: s.ID, Title: s.Title, Absent: r.missing}
	if len(r.missing) > 0 {
		return res, nil
	}
	for i := range s.Steps {
		err := r.do(ctx, &s.Steps[i])
		var wrong *faultError
		if errors.As(err, &wrong) {
			res.Faults = append(res.Faults, fmt.Sprintf("step %d: %v", i+1, err))
			break
		}
		if err != nil {
			return res, fmt.Errorf("conformance %s: step %d: %w", s.ID, i+1, err)
		}
	}
	if err := r.fence(ctx); err != nil {
		res.Faults = append(res.Faults, err.Error())
	}
	for i := range s.Expect {
		res.Faults = append(res.Faults, s.Expect[i].check(r.about(s.Expect[i].Of))...)
	}
	res.Passed = len(res.Faults) == 0
	return res, nil
}

// faultError says what the deployment did wrong in the middle of a script.
type faultError struct{ what string }

func (e *faultError) Error() string { return e.what }

// absentTask stands for any task that was not taken yet.
const absentTask = "task"

// runner is one run of one script.
type runner struct {
	cfg        Config
	script     Script
	missing    []string // what it needs and is not there
	client     *kgo.Client
	partitions int32
	subjects   map[string]*seen // by id of batch or job
	count      int              // records sent
	passes     int              // fences sent
	next       map[place]int64  // offset to read next
}

type place struct {
	topic     string
	partition int32
}

func open(ctx context.Context, cfg Config, s Script) (*runner, error) {
	r := &runner{cfg: cfg, script: s, subjects: map[string]*seen{}, next: map[place]int64{}}
	var err error
	r.client, err = kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(cfg.Bootstrap...), kgo.ProducerLinger(0), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.RecordPartitioner(worker.Partitioner(cfg.Prefix))}, cfg.Client...)...)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(ctx, kadm.NewClient(r.client)); err != nil {
		r.client.Close()
		return nil, err
	}
	return r, nil
}

// prepare looks who runs, and begins to read where the topics end now.
func (r *runner) prepare(ctx context.Context, adm *kadm.Client) (err error) {
	control := codecs.Topic(r.cfg.Prefix, codecs.TopicControl)
	meta, err := adm.ListTopics(ctx, control)
	if err != nil {
		return err
	}
	if !meta.Has(control) {
		return fmt.Errorf("topic %s does not exist", control)
	}
	r.partitions = int32(len(meta[control].Partitions))
	if r.missing, err = r.absent(ctx, adm); err != nil || len(r.missing) > 0 {
		return err
	}
	ends, err := adm.ListEndOffsets(ctx, r.topics()...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	from := map[string]map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if from[o.Topic] == nil {
			from[o.Topic] = map[int32]kgo.Offset{}
		}
		from[o.Topic][o.Partition] = kgo.NewOffset().At(o.Offset)
		r.next[place{o.Topic, o.Partition}] = o.Offset
	})
	r.client.AddConsumePartitions(from)
	return nil
}

// id is the id of a batch or job of a name in the script. The batch of step s of job a is a.s.
func (r *runner) id(name string) string {
	id := r.script.ID + "-" + r.cfg.Unique + "-" + name
	if r.subjects[id] == nil {
		r.subjects[id] = newSeen()
	}
	return id
}

func (r *runner) about(name string) *seen { return r.subjects[r.id(name)] }

func (r *runner) do(ctx context.Context, s *Step) error {
	about := r.about(s.Of)
	switch {
	case s.Await != "":
		return r.await(ctx, s.Await+" of "+s.Of, func() bool { return len(about.events[s.Await]) > 0 })
	case s.Take > 0:
		about.taken += s.Take
		return r.await(ctx, fmt.Sprintf("task %d of %s", about.taken, s.Of), func() bool { return len(about.tasks) >= about.taken })
	case s.Propose != "":
		return r.propose(ctx, s)
	case s.Settle:
		return r.fence(ctx)
	case s.Absent != "":
		if err := r.fence(ctx); err != nil {
			return err
		}
		if len(about.events[s.Absent]) > 0 || s.Absent == absentTask && len(about.tasks) > about.taken {
			return &faultError{fmt.Sprintf("%s of %s came early", s.Absent, s.Of)}
		}
		return nil
	}
	return r.send(ctx, s)
}

func (r *runner) send(ctx context.Context, s *Step) error {
	lo, hi, err := s.span()
	if err != nil {
		return err
	}
	about := r.about(s.Of)
	if s.mentions(varRun) {
		if err := r.await(ctx, "the run of "+s.Of, func() bool { return about.run != "" }); err != nil {
			return err
		}
	}
	vars := map[string]string{varRun: strconv.Quote(about.run), varQueue: strconv.Quote(r.cfg.Queue)}
	if s.mentions(varLarge) {
		vars[varLarge] = strconv.Quote(large)
	}
	var recs []*kgo.Record
	for i := lo; i <= hi; i++ {
		vars[varItem] = strconv.Itoa(i)
		body, err := s.body(vars)
		if err != nil {
			return err
		}
		rec := r.record(topicOf(s.Send), r.id(s.Of), s.Send, body)
		s.change(rec)
		for range max(s.Times, 1) {
			again := *rec
			recs = append(recs, &again)
		}
	}
	return r.client.ProduceSync(ctx, recs...).FirstErr()
}

// topicOf is the log that takes events of a type.
func topicOf(typ string) string {
	if strings.HasPrefix(typ, "batch.") {
		return codecs.TopicControl
	}
	return codecs.TopicJobs
}

// record is a record as a client in any language writes it.
func (r *runner) record(topic, id, typ string, body []byte) *kgo.Record {
	r.count++
	return &kgo.Record{Topic: codecs.Topic(r.cfg.Prefix, topic), Key: []byte(id), Value: body, Headers: []kgo.RecordHeader{
		{Key: codecs.HeaderSpecVersion, Value: []byte("1.0")},
		{Key: codecs.HeaderID, Value: []byte(id + "/" + strconv.Itoa(r.count))},
		{Key: codecs.HeaderSource, Value: []byte("/quiesce/" + r.cfg.Prefix + "/conformance")},
		{Key: codecs.HeaderType, Value: []byte("quiesce." + typ + ".v1")},
		{Key: codecs.HeaderContentType, Value: []byte(codecs.ContentJSON)},
	}}
}

// change applies the step's own key and headers.
func (s *Step) change(rec *kgo.Record) {
	if s.Key == "-" {
		rec.Key = nil
	}
	keep := rec.Headers[:0]
	for _, h := range rec.Headers {
		v, given := s.Headers[h.Key]
		if given && v == "" {
			continue
		}
		if given {
			h.Value = []byte(v)
		}
		keep = append(keep, h)
	}
	rec.Headers = keep
}
