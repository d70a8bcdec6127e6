package notify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// KindDelivery is the kind of a delivery's task.
const KindDelivery = "delivery"

// Delivery is the payload of a delivery's task: one event for one subscription.
type Delivery struct {
	ID           string          `json:"id"`             // of the event: the same for every subscription and attempt
	Type         string          `json:"type"`           // batch.completed, step.started, ...
	Subject      string          `json:"subject"`        // batch or job id
	Time         int64           `json:"time,string"`    // append time of the event, ms since the epoch
	Data         json.RawMessage `json:"data,omitempty"` // of the event, as on the wire; without its subscriptions
	Cut          bool            `json:"cut,omitempty"`  // the data was too large and is left out
	Subscription Subscription    `json:"subscription"`
}

// payload is the delivery as JSON. Escapes for HTML would make some texts six times as long.
func (d *Delivery) payload() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		panic(err) // text and JSON that was just printed
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// ReadDelivery reads the payload of a delivery's task.
func ReadDelivery(t *codecs.Task) (*Delivery, error) {
	if t.GetKind() != KindDelivery {
		return nil, fmt.Errorf("task %s: kind %q is no delivery", t.GetId(), t.GetKind())
	}
	d := &Delivery{}
	if err := json.Unmarshal(t.GetPayload().GetData(), d); err != nil {
		return nil, fmt.Errorf("task %s: %w", t.GetId(), err)
	}
	return d, nil
}

// destination is the digest of where and how a subscription delivers.
func (s Subscription) destination() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", s.URL, s.Template, s.Secret))
	return hex.EncodeToString(sum[:16])
}

// taskID names the delivery of an event to a destination.
func taskID(event, destination string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s", event, destination))
	return hex.EncodeToString(sum[:16])
}

// dataOf is an event's data as JSON; nil = it is too large.
func dataOf(ev *codecs.Event) json.RawMessage {
	if ev.Data == nil || proto.Size(ev.Data) > 4*maxData {
		return nil
	}
	m := proto.Clone(ev.Data)
	switch d := m.(type) {
	case *codecs.JobRequested:
		d.Notify = nil
	case *codecs.JobEvent:
		d.Notify = nil
	case *codecs.BatchEvent:
		d.Notify = nil
	}
	b, err := codecs.JSON(m)
	if err != nil || len(b) > maxData {
		return nil
	}
	return b
}
