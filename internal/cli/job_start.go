package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// jobRequest is what the flags of job start say.
type jobRequest struct {
	typ, definition  string
	input, reference string
	contentType      string
	labels           []string
	batches, jobs    []string
	notify           []string
	priority         uint32
	key              string
	wait             bool
	timeout          time.Duration
}

func (a *app) jobStart() *cobra.Command {
	var t jobTarget
	var q jobRequest
	cmd := &cobra.Command{
		Use:   "start [ID]",
		Short: "Request a job, and with --wait follow it to its end",
		Long: `Request a job of a type that the deployment knows (quiesce dev or run --jobs), or of a type file given here. Without an
ID a new one is made and printed. The same ID twice is refused; the same ID with the same --idempotency-key is the same
request.`,
		Example: `  quiesce job start november --type invoices --input '{"month": 11}'
  quiesce job start --definition nightly.yaml --await-batch feed-2026-11-30 --wait
  quiesce job start big --type invoices --input @orders.json --label team=billing`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if len(ids) == 0 {
				ids = []string{strings.ToLower(ulid.Make().String())}
			}
			c, id, err := t.job(cmd, ids[0])
			if err != nil {
				return err
			}
			body, err := q.body(cmd, a.in)
			if err != nil {
				return err
			}
			return a.startJob(cmd, c, id, body, &q)
		},
	}
	t.flags(cmd)
	q.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (q *jobRequest) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.typ, "type", "", "job type that the deployment knows: name, or name@version")
	f.StringVar(&q.definition, "definition", "", "job type file to use instead; its queues must exist")
	f.StringVar(&q.input, "input", "", "input of the first steps and the splitters: a text, @FILE, or - for stdin")
	f.StringVar(&q.reference, "input-reference", "", "URI of an input that is too large to be sent along")
	f.StringVar(&q.contentType, "content-type", "", "content type of the input (default: application/json where it is JSON)")
	f.StringSliceVar(&q.labels, "label", nil, "label of the job, name=value (repeatable)")
	f.StringSliceVar(&q.batches, "await-batch", nil, "begin when this batch has ended well (repeatable)")
	f.StringSliceVar(&q.jobs, "await-job", nil, "begin when this job has ended well (repeatable)")
	f.StringSliceVar(&q.notify, "notify", nil, "who wants to know, EVENT=URL: job.completed=https://..., step.*=mailto:... (at most four)")
	f.Uint32Var(&q.priority, "priority", 0, "higher goes first among what a worker has fetched")
	f.StringVar(&q.key, "idempotency-key", "", "the same key is the same request, however often it is sent (default: a new one)")
	f.BoolVar(&q.wait, "wait", false, "wait until the job has ended; the exit code is that of job wait")
	f.DurationVar(&q.timeout, "timeout", 0, "with --wait: give up after this long, with exit code 124 (default: never)")
}

// body makes the request of the flags.
func (q *jobRequest) body(cmd *cobra.Command, stdin io.Reader) (*codecs.JobRequested, error) {
	if (q.typ == "") == (q.definition == "") {
		return nil, usage(cmd, "name one of --type and --definition")
	}
	if q.timeout != 0 && !q.wait || q.timeout < 0 {
		return nil, usage(cmd, "--timeout belongs to --wait, and is positive")
	}
	labels, err := labelFilter(cmd, q.labels)
	if err != nil {
		return nil, err
	}
	r := &codecs.JobRequested{Labels: labels, AwaitBatches: q.batches, AwaitJobs: q.jobs, Priority: q.priority}
	if q.definition != "" {
		t, err := loadJobType(cmd, q.definition)
		if err != nil {
			return nil, err
		}
		if r.Definition, err = t.Definition(); err != nil {
			return nil, usage(cmd, "%w", err)
		}
		r.Type, r.Version = r.Definition.Name, r.Definition.Version
	} else {
		name, version, pinned := strings.Cut(q.typ, "@")
		r.Type = name
		if pinned {
			n, err := strconv.ParseUint(version, 10, 32)
			if err != nil || n == 0 {
				return nil, usage(cmd, "--type %q: want name or name@version", q.typ)
			}
			r.Version = uint32(n)
		}
	}
	for _, n := range q.notify {
		event, url, ok := strings.Cut(n, "=")
		if !ok || event == "" || url == "" {
			return nil, usage(cmd, "--notify %q: want EVENT=URL", n)
		}
		r.Notify = append(r.Notify, &codecs.Subscription{Event: event, Url: url})
	}
	r.Input, err = q.payload(cmd, stdin)
	return r, err
}

// payload reads the input; nil = none.
func (q *jobRequest) payload(cmd *cobra.Command, stdin io.Reader) (*codecs.Payload, error) {
	if q.reference != "" {
		if q.input != "" {
			return nil, usage(cmd, "--input and --input-reference exclude each other")
		}
		return &codecs.Payload{Reference: q.reference, ContentType: q.contentType}, nil
	}
	data := []byte(q.input)
	var err error
	if file, ok := strings.CutPrefix(q.input, "@"); ok {
		data, err = os.ReadFile(file)
	} else if q.input == "-" {
		data, err = io.ReadAll(stdin)
	}
	if err != nil {
		return nil, usage(cmd, "--input: %w", err)
	}
	if len(data) == 0 {
		return nil, nil
	}
	p := &codecs.Payload{Data: data, ContentType: q.contentType}
	if p.ContentType == "" && json.Valid(data) {
		p.ContentType = codecs.ContentJSON
	}
	return p, nil
}

// startJob sends the request and reads the job back, so that a request which the workflow refused is told.
func (a *app) startJob(cmd *cobra.Command, c *client.Client, id client.JobID, body *codecs.JobRequested, q *jobRequest) error {
	ctx := cmd.Context()
	o := client.WriteOptions{IdempotencyKey: q.key}
	if o.IdempotencyKey == "" {
		o.IdempotencyKey = ulid.Make().String()
	}
	var sent *api.Requested
	err := patient(ctx, func() (err error) {
		sent, err = c.RequestJob(ctx, id, body, o)
		return err
	})
	if err != nil {
		return err
	}
	var j *api.Job
	err = patient(ctx, func() (err error) {
		j, err = c.Job(ctx, id)
		return err
	})
	switch {
	case errors.Is(err, client.ErrNotFound):
		return fmt.Errorf("job %s was refused: the reason is with its request in the dead letter (is the type %s known to quiesce dev or run --jobs?)", id, body.Type)
	case err != nil:
		return err
	case j.Request != sent.Request:
		return fmt.Errorf("job %s exists already: it is %s", id, j.State)
	}
	if q.wait {
		return a.waitJob(ctx, c, id, q.timeout)
	}
	if a.json {
		return a.printJSON(j)
	}
	a.printf("%s\n", id)
	return nil
}
