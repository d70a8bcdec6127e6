package codecs

import "strings"

// FieldError names one field of an event's data and what is wrong with it.
type FieldError struct {
	Pointer string // JSON pointer into the data, for example /items/0/last; "" = the data as a whole
	Reason  string
}

func (e FieldError) Error() string {
	if e.Pointer == "" {
		return e.Reason
	}
	return e.Pointer + ": " + e.Reason
}

// FieldErrors are all faults found in one event, at most maxFieldErrors.
type FieldErrors []FieldError

const maxFieldErrors = 16

func (es FieldErrors) Error() string {
	s := make([]string, len(es))
	for i, e := range es {
		s[i] = e.Error()
	}
	return strings.Join(s, "; ")
}

func (es *FieldErrors) add(pointer, reason string) {
	if len(*es) < maxFieldErrors {
		*es = append(*es, FieldError{pointer, reason})
	}
}

// err returns nil when there is none: a nil FieldErrors in an error is not nil.
func (es FieldErrors) err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}
