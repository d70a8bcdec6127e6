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
)

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
}

// Result is the answer of one script.
type Result struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Passed bool     `json:"passed"`
	Faults []string `json:"faults,omitempty"`
}

// Run executes one script. The error is about the run itself (no broker, a bad script); what the deployment gets wrong
// is in the result.
func Run(ctx context.Context, cfg Config, s Script) (Result, error) {
	if cfg.Patience == 0 {
		cfg.Patience = 20 * time.Second
	}
	r, err := open(ctx, cfg, s)
	if err != nil {
		return Result{}, fmt.Errorf("conformance %s: %w", s.ID, err)
	}
	defer r.client.Close()
	res := Result{ID: s.ID, Title: s.Title}
	for i := range s.Steps {
		err := r.do(ctx, &s.Steps[i])
		var late *lateError
		if errors.As(err, &late) {
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
		res.Faults = append(res.Faults, s.Expect[i].check(r.about(s.Expect[i].Batch))...)
	}
	res.Passed = len(res.Faults) == 0
	return res, nil
}

// lateError says that something awaited did not come.
type lateError struct {
	what  string
	after time.Duration
}

func (e *lateError) Error() string { return fmt.Sprintf("%s did not come within %s", e.what, e.after) }

// runner is one run of one script.
type runner struct {
	cfg        Config
	script     Script
	client     *kgo.Client
	partitions int32
	names      map[string]string // batch id -> name in the script
	batches    map[string]*seen  // by batch id
	count      int               // records sent
	next       map[place]int64   // offset to read next
}

type place struct {
	topic     string
	partition int32
}

func open(ctx context.Context, cfg Config, s Script) (*runner, error) {
	r := &runner{cfg: cfg, script: s, names: map[string]string{}, batches: map[string]*seen{}, next: map[place]int64{}}
	topics := []string{codecs.Topic(cfg.Prefix, codecs.TopicEvents), codecs.Topic(cfg.Prefix, codecs.TopicDeadLetter)}
	var err error
	r.client, err = kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(cfg.Bootstrap...), kgo.ProducerLinger(0), kgo.FetchMaxWait(100 * time.Millisecond)}, cfg.Client...)...)
	if err != nil {
		return nil, err
	}
	adm := kadm.NewClient(r.client)
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	control := codecs.Topic(cfg.Prefix, codecs.TopicControl)
	var meta kadm.TopicDetails
	if err == nil {
		meta, err = adm.ListTopics(ctx, control)
	}
	if err == nil && !meta.Has(control) {
		err = fmt.Errorf("topic %s does not exist", control)
	}
	if err != nil {
		r.client.Close()
		return nil, err
	}
	r.partitions = int32(len(meta[control].Partitions))
	from := map[string]map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if from[o.Topic] == nil {
			from[o.Topic] = map[int32]kgo.Offset{}
		}
		from[o.Topic][o.Partition] = kgo.NewOffset().At(o.Offset)
		r.next[place{o.Topic, o.Partition}] = o.Offset
	})
	r.client.AddConsumePartitions(from)
	return r, nil
}

// id is the batch id of a name in the script.
func (r *runner) id(name string) string {
	id := r.script.ID + "-" + r.cfg.Unique + "-" + name
	if _, ok := r.names[id]; !ok {
		r.names[id] = name
		r.batches[id] = newSeen()
	}
	return id
}

func (r *runner) about(name string) *seen { return r.batches[r.id(name)] }

func (r *runner) do(ctx context.Context, s *Step) error {
	id := r.id(s.Batch)
	if s.Await != "" {
		return r.await(ctx, s.Await+" of batch "+s.Batch, func() bool { return len(r.batches[id].events[s.Await]) > 0 })
	}
	lo, hi, err := s.span()
	if err != nil {
		return err
	}
	var recs []*kgo.Record
	for i := lo; i <= hi; i++ {
		body, err := s.body(i)
		if err != nil {
			return err
		}
		rec := r.record(id, s.Send, body)
		s.change(rec)
		for range max(s.Times, 1) {
			again := *rec
			recs = append(recs, &again)
		}
	}
	return r.client.ProduceSync(ctx, recs...).FirstErr()
}

// record is a control record as a client in any language writes it.
func (r *runner) record(id, typ string, body []byte) *kgo.Record {
	r.count++
	return &kgo.Record{Topic: codecs.Topic(r.cfg.Prefix, codecs.TopicControl), Key: []byte(id), Value: body, Headers: []kgo.RecordHeader{
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

// await reads events and dead letters until done.
func (r *runner) await(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Patience)
	defer cancel()
	for !done() {
		fetches := r.client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return &lateError{what, r.cfg.Patience}
			}
			return err
		}
		fetches.EachRecord(func(k *kgo.Record) {
			r.next[place{k.Topic, k.Partition}] = k.Offset + 1
			r.read(k)
		})
	}
	return nil
}

// read files what came out under its batch. Records of other batches are not ours.
func (r *runner) read(k *kgo.Record) {
	if k.Topic == codecs.Topic(r.cfg.Prefix, codecs.TopicDeadLetter) {
		r.readDeadLetter(k)
		return
	}
	s, ok := r.batches[string(codecs.BatchOf(k.Key))]
	if !ok {
		return
	}
	rec := codecs.Record{Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, codecs.Header{Key: h.Key, Value: h.Value})
	}
	var ev codecs.Event
	if codecs.Decode(&rec, &ev) == nil {
		s.add(ev.Type, ev.ID, ev.Data)
	}
}

// readDeadLetter files a dead letter under the batch of its key, or, where it has none, of its ce_id.
func (r *runner) readDeadLetter(k *kgo.Record) {
	rec := codecs.Record{Key: k.Key, Value: k.Value}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, codecs.Header(h))
	}
	id := string(codecs.BatchOf(k.Key))
	if v, ok := rec.Header(codecs.HeaderID); ok && id == "" {
		id, _, _ = strings.Cut(string(v), "/")
	}
	s, ok := r.batches[id]
	if !ok {
		return
	}
	letter, err := codecs.ParseDeadLetter(&rec)
	if err != nil {
		letter = &codecs.DeadLetter{Reason: "no reason: " + err.Error()}
	}
	s.deadLetters = append(s.deadLetters, letter.Reason)
}
