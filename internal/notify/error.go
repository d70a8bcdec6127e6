package notify

import (
	"errors"
	"time"
)

// Error is a delivery that did not succeed.
type Error struct {
	Retry bool          // a later attempt may succeed
	After time.Duration // that the endpoint asked for before it; 0 = nothing said
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Retryable says whether a later attempt may succeed.
func Retryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Retry
}

func later(err error) error { return &Error{Retry: true, Err: err} }
func never(err error) error { return &Error{Err: err} }
