package api

import (
	"fmt"
	"strings"
)

// Problem is an RFC 9457 problem document.
type Problem struct {
	Type   string  `json:"type"` // a stable name: /problems/<name>
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty"`
	Errors []Field `json:"errors,omitempty"`
	// Recovered is the part of the view that is loaded, in percent; only of type recovering.
	Recovered *float64 `json:"recovered_percent,omitempty"`
}

// Field is one bad member of a request body, or one bad query parameter.
type Field struct {
	Pointer   string `json:"pointer,omitempty"`   // JSON pointer into the body
	Parameter string `json:"parameter,omitempty"` // name of the query parameter or header
	Reason    string `json:"reason"`
}

// Names of the problem types.
const (
	ProblemInvalid     = "/problems/invalid"        // 422: fields name what is wrong
	ProblemBadRequest  = "/problems/bad-request"    // 400: not even the form is right
	ProblemNotFound    = "/problems/not-found"      // 404
	ProblemMethod      = "/problems/method"         // 405
	ProblemWrongState  = "/problems/wrong-state"    // 409
	ProblemStale       = "/problems/stale-version"  // 412
	ProblemTooLarge    = "/problems/too-large"      // 413
	ProblemMedia       = "/problems/media-type"     // 415
	ProblemAuth        = "/problems/unauthorized"   // 401
	ProblemForbidden   = "/problems/forbidden"      // 403
	ProblemRecovering  = "/problems/recovering"     // 503: the view is being loaded
	ProblemBusy        = "/problems/busy"           // 503: too many streams
	ProblemBroker      = "/problems/broker"         // 502: Kafka did not take or give something
	ProblemNotYet      = "/problems/not-yet"        // 504: at_least was not reached in time
	ProblemInternal    = "/problems/internal"       // 500
	ProblemUnavailable = "/problems/not-configured" // 501: this sidecar has no such source
)

// Error prints the title, the detail and the fields.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Title)
	if p.Detail != "" {
		b.WriteString(": " + p.Detail)
	}
	for _, f := range p.Errors {
		name := f.Pointer
		if f.Parameter != "" {
			name = f.Parameter
		}
		fmt.Fprintf(&b, "; %s: %s", name, f.Reason)
	}
	return b.String()
}
