package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/queue"
	"github.com/quiesce/quiesce/topology"
)

// Log takes the records of a reporter. Its methods may be called by several goroutines.
type Log interface {
	// Append writes a record and calls done once: with where it stands when it is durable, or with why it is not. It may
	// block while too much is under way.
	Append(ctx context.Context, rec *codecs.Record, done func(partition int32, offset int64, err error))
}

// LogReporter reports to the topics of a deployment: control, jobs, manifest, dead-letter.
type LogReporter struct {
	cfg     Config
	log     Log
	source  string
	reports *reports
}

var _ Reporter = (*LogReporter)(nil)

// NewReporter returns a reporter on a client made with Partitioner. The client stays the caller's; Close the reporter
// first.
func NewReporter(cl *kgo.Client, cfg Config) *LogReporter { return NewLogReporter(kafkaLog{cl}, cfg) }

// NewLogReporter returns a reporter on any log.
func NewLogReporter(log Log, cfg Config) *LogReporter {
	cfg = cfg.WithDefaults()
	r := &LogReporter{cfg: cfg, log: log, source: codecs.Source(cfg.Prefix, cfg.ClientID)}
	r.reports = newReports(cfg.ReportAfter, r.send)
	return r
}

// Close sends what waits and returns when nothing is under way.
func (r *LogReporter) Close() { r.reports.close() }

// Partitioner is for clients that write to the topics of a deployment: by the key up to the first 0x00, and to queues by
// hand, as queue.NewProducer does.
func Partitioner(prefix string) kgo.Partitioner {
	work := topology.WorkTopic(prefix, "")
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		if strings.HasPrefix(topic, work) {
			return func(r *kgo.Record, n int) int { return int(r.Partition) % n }
		}
		return func(r *kgo.Record, n int) int { return int(codecs.Partition(r.Key, int32(n))) }
	})
}

// End implements Reporter.
func (r *LogReporter) End(e *End, acked func(error)) {
	if !codecs.IsFailure(e.Outcome) {
		r.outcome(e, acked)
		return
	}
	rec, err := r.letter(e)
	if err != nil {
		acked(err)
		return
	}
	r.log.Append(context.Background(), rec, func(_ int32, _ int64, err error) {
		if err != nil { // the outcome is worth more than the letter
			r.cfg.Log.Error("dead letter not written", "queue", r.cfg.Queue, "task_id", e.Task.Id, "batch_id", e.Task.Batch,
				"index", e.Task.Index, "error", err)
		}
		r.outcome(e, acked)
	})
}

func (r *LogReporter) outcome(e *End, acked func(error)) {
	switch e.Task.Kind {
	case kindSubjob:
		r.reports.add(e, acked)
	case kindDelivery:
		acked(nil)
	default:
		data := &codecs.TaskCompleted{Step: e.Task.Step, Round: e.Task.Round, Outcome: e.Outcome, Reason: e.Reason, Result: e.Result,
			Attempt: e.Task.Attempt, Reporter: r.cfg.ClientID, Timing: timingOf(e)}
		rec, err := r.record(codecs.TopicJobs, e.Task.JobKey, codecs.TypeTaskCompleted, endID(e.Task), data)
		if err != nil {
			acked(err)
			return
		}
		r.log.Append(context.Background(), rec, func(_ int32, _ int64, err error) { acked(err) })
	}
}

// endID is the ce_id of the outcome of a step's task: an attempt ends once.
func endID(t *Task) string { return fmt.Sprintf("%s/%d/%d/%s", t.Id, t.Round, t.Attempt, t.Kind) }

// letter is the dead letter of a task that failed for good.
func (r *LogReporter) letter(e *End) (*codecs.Record, error) {
	at, id := e.Delivery.Origin()
	task, err := codecs.Encode(at.Topic, queue.Key(e.Task), r.source, &codecs.Event{Type: codecs.TypeTask, ID: endID(e.Task), Data: e.Task})
	if err != nil {
		return nil, err
	}
	task.Partition, task.Offset = at.Partition, at.Offset
	letter := codecs.NewDeadLetter(codecs.Topic(r.cfg.Prefix, codecs.TopicDeadLetter), &task, id, e.Outcome.String()+": "+e.Reason)
	return &letter, nil
}

// send writes the report of a group; done is called with the broker's answer.
func (r *LogReporter) send(batch string, report *codecs.BatchReport, done func(error)) {
	report.Reporter = r.cfg.ClientID
	rec, err := r.record(codecs.TopicControl, batch, codecs.TypeBatchReport, newID(), report)
	if err != nil {
		done(err)
		return
	}
	r.log.Append(context.Background(), rec, func(_ int32, _ int64, err error) { done(err) })
}

// Chunk implements Reporter.
func (r *LogReporter) Chunk(ctx context.Context, key string, c *codecs.ManifestChunk) (*codecs.ChunkPosition, error) {
	var data proto.Message
	if c != nil {
		data = c
	}
	rec, err := r.record(codecs.TopicManifest, key, codecs.TypeManifestChunk, newID(), data)
	if err != nil {
		return nil, err
	}
	at, err := r.write(ctx, rec)
	if err != nil {
		return nil, fmt.Errorf("manifest of batch %s: %w", codecs.BatchOf([]byte(key)), err)
	}
	at.First = c.GetFirst()
	return at, nil
}

// Propose implements Reporter.
func (r *LogReporter) Propose(ctx context.Context, t *Task, p *codecs.SplitProposed) error {
	rec, err := r.record(codecs.TopicJobs, t.JobKey, codecs.TypeSplitProposed, p.Proposal, p)
	if err != nil {
		return err
	}
	if _, err := r.write(ctx, rec); err != nil {
		return fmt.Errorf("split of step %s of job %s: %w", t.Step, t.Job, err)
	}
	return nil
}

// write appends a record and waits until it is durable.
func (r *LogReporter) write(ctx context.Context, rec *codecs.Record) (*codecs.ChunkPosition, error) {
	type answer struct {
		at  *codecs.ChunkPosition
		err error
	}
	done := make(chan answer, 1)
	r.log.Append(ctx, rec, func(partition int32, offset int64, err error) {
		done <- answer{&codecs.ChunkPosition{Partition: uint32(partition), Offset: offset}, err}
	})
	a := <-done
	return a.at, a.err
}

func (r *LogReporter) record(topic, key, kind, id string, data proto.Message) (*codecs.Record, error) {
	rec, err := codecs.Encode(codecs.Topic(r.cfg.Prefix, topic), key, r.source, &codecs.Event{Type: kind, ID: id, Data: data})
	if err != nil {
		return nil, err
	}
	return &rec, nil
}

// kafkaLog is the log of a Kafka cluster.
type kafkaLog struct{ cl *kgo.Client }

// Append implements Log.
func (l kafkaLog) Append(ctx context.Context, rec *codecs.Record, done func(int32, int64, error)) {
	l.cl.Produce(ctx, toKgo(rec), func(r *kgo.Record, err error) { done(r.Partition, r.Offset, err) })
}

func toKgo(rec *codecs.Record) *kgo.Record {
	out := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value, Headers: make([]kgo.RecordHeader, len(rec.Headers))}
	for i, h := range rec.Headers {
		out.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return out
}

func timingOf(e *End) *codecs.Timing {
	t := newTiming()
	t.add(e)
	return t.message()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
