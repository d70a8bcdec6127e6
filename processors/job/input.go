package job

import (
	"encoding/json"
	"strings"

	"github.com/quiesce/quiesce/codecs"
)

// input is what a step's task, or its splitter, gets: the job's input and what its predecessors left.
type input struct {
	Job      string               `json:"job"`
	Customer string               `json:"customer,omitempty"`
	Step     string               `json:"step"`
	Input    *payload             `json:"input,omitempty"`
	Steps    map[string]*stepDone `json:"steps,omitempty"`
}

type stepDone struct {
	State  string          `json:"state"`
	Reason string          `json:"reason,omitempty"`
	Result *payload        `json:"result,omitempty"`
	Counts json.RawMessage `json:"counts,omitempty"`
	Batch  string          `json:"batch,omitempty"`
}

// payload shows data as JSON when it is JSON, as text when it is text, else as base64.
type payload struct {
	JSON        json.RawMessage `json:"json,omitempty"`
	Text        string          `json:"text,omitempty"`
	Base64      []byte          `json:"base64,omitempty"`
	Reference   string          `json:"reference,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
}

func show(p *codecs.Payload) *payload {
	if p == nil {
		return nil
	}
	out := &payload{Reference: p.Reference, ContentType: p.ContentType}
	switch {
	case len(p.Data) == 0:
	case json.Valid(p.Data):
		out.JSON = p.Data
	case strings.HasPrefix(p.ContentType, "text/"):
		out.Text = strings.ToValidUTF8(string(p.Data), "\uFFFD")
	default:
		out.Base64 = p.Data
	}
	return out
}

// stepInput is the JSON document of step i: job, customer, step, input, and for every predecessor (direct or not) its
// state, result and counts. Objects are written in key order, so equal rows give equal bytes.
func stepInput(r *codecs.JobRow, i int) []byte {
	in := input{Job: r.Job, Customer: r.Customer, Step: r.Definition.Steps[i].Name, Input: show(r.Input)}
	before := ancestors(r.Definition, i)
	if len(before) > 0 {
		in.Steps = map[string]*stepDone{}
	}
	for _, k := range before {
		st := r.Steps[k]
		d := &stepDone{State: st.State.String(), Reason: st.Reason, Result: show(st.Result), Batch: st.Batch}
		if c := st.Counts; c != nil {
			d.Counts, _ = json.Marshal(map[string]uint32{
				"total": c.Total, "ok": c.Ok, "failed": c.Failed, "skipped": c.Skipped,
				"cancelled": c.Cancelled, "timed_out": c.TimedOut, "lost": c.Lost,
			})
		}
		in.Steps[r.Definition.Steps[k].Name] = d
	}
	b, err := json.Marshal(in)
	if err != nil { // every raw message in it was checked by json.Valid
		panic("job " + r.Job + ": input of step " + in.Step + ": " + err.Error())
	}
	return b
}

// ancestors returns the indexes of all steps that step i comes after, in the order of the definition.
func ancestors(def *codecs.JobType, i int) []int {
	return closure(def, i, func(of, other int) bool { return follows(def, of, other) })
}

// descendants returns the indexes of all steps that come after step i.
func descendants(def *codecs.JobType, i int) []int {
	return closure(def, i, func(of, other int) bool { return follows(def, other, of) })
}

// follows says whether step i names step k in its after list.
func follows(def *codecs.JobType, i, k int) bool {
	for _, a := range def.Steps[i].After {
		if a == def.Steps[k].Name {
			return true
		}
	}
	return false
}

func closure(def *codecs.JobType, i int, next func(of, other int) bool) []int {
	seen := make([]bool, len(def.Steps))
	todo := []int{i}
	for len(todo) > 0 {
		of := todo[0]
		todo = todo[1:]
		for k := range def.Steps {
			if !seen[k] && k != i && next(of, k) {
				seen[k] = true
				todo = append(todo, k)
			}
		}
	}
	var out []int
	for k, ok := range seen {
		if ok {
			out = append(out, k)
		}
	}
	return out
}
