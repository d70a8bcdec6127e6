package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Errors that callers tell apart. An *api.Problem in an error's chain says more.
var (
	ErrUnreachable  = errors.New("no sidecar")
	ErrNotFound     = errors.New("not found")
	ErrWrongState   = errors.New("wrong state")
	ErrStaleVersion = errors.New("stale version")
	ErrInvalid      = errors.New("invalid request")
	ErrRecovering   = errors.New("sidecar is recovering")
	ErrNotYet       = errors.New("not durable in time")
	ErrUnauthorized = errors.New("not authorized")
)

// problemError is an answer of the sidecar: one of the errors above, when it has one, and the document.
type problemError struct {
	kind error
	doc  *api.Problem
}

func (e *problemError) Error() string { return e.doc.Error() }

func (e *problemError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.doc}
	}
	return []error{e.kind, e.doc}
}

// kinds by status.
var kinds = map[int]error{
	400: ErrInvalid, 413: ErrInvalid, 415: ErrInvalid, 422: ErrInvalid,
	401: ErrUnauthorized, 403: ErrUnauthorized,
	404: ErrNotFound, 409: ErrWrongState, 412: ErrStaleVersion, 503: ErrRecovering, 504: ErrNotYet,
}

func problemOf(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	doc := &api.Problem{}
	if err := json.Unmarshal(b, doc); err != nil || doc.Title == "" {
		doc = &api.Problem{Title: resp.Status, Status: resp.StatusCode, Detail: "the answer is not from a sidecar"}
	}
	return &problemError{kind: kinds[resp.StatusCode], doc: doc}
}

// Statuses with which a program that waits for a batch exits.
const (
	ExitCompleted    = 0
	ExitError        = 1
	ExitUsage        = 2
	ExitWithFailures = 3
	ExitFailed       = 4
	ExitCancelled    = 5
	ExitExpired      = 6
	ExitInconsistent = 7
	ExitTimeout      = 124
)

// ExitCode says with which status a program should exit because of an error: 0 for nil, 2 for what the user asked wrongly,
// 124 for a time-out, else 1.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitCompleted
	case errors.Is(err, ErrInvalid):
		return ExitUsage
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	}
	return ExitError
}

// ExitOf says with which status a program that waited for a batch should exit; attempted accepts an end whose tasks have
// outcome unknown (modes observe and markers) as completed.
func ExitOf(b *api.Batch, attempted bool) int {
	if b.State == "completed" && b.Counts.Unknown > 0 && !attempted {
		return ExitWithFailures
	}
	return exitOfState(b.State)
}

// ExitOfJob says with which status a program that waited for a job should exit.
func ExitOfJob(j *api.Job) int { return exitOfState(j.State) }

func exitOfState(state string) int {
	switch state {
	case "completed":
		return ExitCompleted
	case "completed_with_failures":
		return ExitWithFailures
	case "failed":
		return ExitFailed
	case "cancelled":
		return ExitCancelled
	case "expired":
		return ExitExpired
	case "inconsistent":
		return ExitInconsistent
	}
	return ExitTimeout
}
