package sidecar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// Limits of request bodies, in bytes.
const (
	maxBody       = 256 << 10
	maxReportBody = 1 << 20
)

// readBody reads a JSON body of at most limit bytes. An empty body counts as {}.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if ct := r.Header.Get("Content-Type"); ct != "" || r.ContentLength != 0 {
		if media, _, err := mime.ParseMediaType(ct); err != nil || media != "application/json" {
			return nil, &api.Problem{Type: api.ProblemMedia, Title: "Unsupported media type", Status: 415,
				Detail: "send Content-Type: application/json"}
		}
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &api.Problem{Type: api.ProblemTooLarge, Title: "Body too large", Status: 413,
			Detail: fmt.Sprintf("at most %d bytes", limit)}
	case err != nil:
		return nil, badRequest("body: " + err.Error())
	case len(b) == 0:
		return []byte("{}"), nil
	case !json.Valid(b):
		return nil, badRequest("the body is not JSON")
	}
	return b, nil
}

// decodeData reads the data of an event; unknown members and members of a wrong type are named.
func decodeData(b []byte, m proto.Message) error { return named(codecs.UnmarshalStrictJSON(b, m), "") }

// validate checks an event as the controller will, and names the members of the body that are wrong. below is the part
// of the data that the body is.
func validate(ev *codecs.Event, below string) error { return named(codecs.Validate(ev), below) }

// named turns the faults of an event into a 422.
func named(err error, below string) error {
	if err == nil {
		return nil
	}
	var faults codecs.FieldErrors
	if !errors.As(err, &faults) {
		return invalid(api.Field{Reason: err.Error()})
	}
	fields := make([]api.Field, len(faults))
	for i, f := range faults {
		fields[i] = api.Field{Pointer: strings.TrimPrefix(f.Pointer, below), Reason: f.Reason}
	}
	return invalid(fields...)
}
