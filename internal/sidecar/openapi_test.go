package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/sidecar"
)

var document = sync.OnceValues(func() (*openapi3.T, error) {
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

// docPath turns a route pattern into the path of the document.
func docPath(pattern string) string {
	if pattern != "/" {
		pattern = strings.TrimSuffix(pattern, "/")
	}
	return strings.ReplaceAll(pattern, "*", "{file}")
}

func TestEveryRouteIsDocumentedAndViceVersa(t *testing.T) {
	doc, err := document()
	require.NoError(t, err)
	b := setup(t)
	s, err := sidecar.New(b.cfg)
	require.NoError(t, err)
	routed := map[string]bool{}
	require.NoError(t, chi.Walk(s.Handler().(chi.Routes), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routed[method+" "+docPath(pattern)] = true
		return nil
	}))
	documented := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+path] = true
		}
	}
	require.Equal(t, documented, routed)
}

func TestDocumentIsServed(t *testing.T) {
	b := setup(t)
	var doc map[string]any
	b.get("/v1/openapi.json").ok(200, &doc)
	require.Equal(t, "3.1.0", doc["openapi"])
}

// The checker below would let everything pass if it did not find the operation or skipped the schema.
func TestCheckerRefusesWhatTheDocumentDoesNotSay(t *testing.T) {
	doc, err := document()
	require.NoError(t, err)
	for name, body := range map[string]string{
		"unknown member": `{"status":"ok","more":1}`,
		"wrong type":     `{"status":1}`,
		"not in enum":    `{"status":"fine"}`,
		"missing member": `{}`,
	} {
		h := http.Header{"Content-Type": {"application/json"}}
		require.Error(t, validate(doc, httptest.NewRequest("GET", "/healthz", nil), "/healthz", 200, h, []byte(body)), name)
	}
	h := http.Header{"Content-Type": {"application/json"}}
	require.Error(t, validate(doc, httptest.NewRequest("GET", "/healthz", nil), "/healthz", 299, h, []byte(`{"status":"ok"}`)), "status")
	require.NoError(t, validate(doc, httptest.NewRequest("GET", "/healthz", nil), "/healthz", 200, h, []byte(`{"status":"ok"}`)))
}

// checked runs every exchange of the tests through the document.
func checked(t *testing.T, next http.Handler) http.Handler {
	doc, err := document()
	require.NoError(t, err)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/events" || r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/assets/") {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		rec := httptest.NewRecorder()
		rctx := chi.NewRouteContext()
		next.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, rctx)))
		pattern := docPath(rctx.RoutePattern())
		if item := doc.Paths.Value(pattern); item != nil && item.GetOperation(r.Method) != nil {
			asked := r.Clone(r.Context())
			asked.Body = io.NopCloser(bytes.NewReader(body))
			if err := validate(doc, asked, pattern, rec.Code, rec.Header(), rec.Body.Bytes()); err != nil {
				t.Errorf("%s %s -> %d: %v\n%s", r.Method, r.URL, rec.Code, err, rec.Body.Bytes())
			}
		}
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// validate compares one exchange with the document: the response always, the request when it was accepted.
func validate(doc *openapi3.T, r *http.Request, pattern string, status int, header http.Header, body []byte) error {
	item := doc.Paths.Value(pattern)
	in := &openapi3filter.RequestValidationInput{Request: r, QueryParams: r.URL.Query(), PathParams: pathParams(pattern, r.URL),
		Route:   &routers.Route{Spec: doc, Path: pattern, PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
	if status < 400 {
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			return err
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status, Header: header, Options: in.Options}
	out.SetBodyBytes(body)
	return openapi3filter.ValidateResponse(r.Context(), out)
}

var inBraces = regexp.MustCompile(`\{(\w+)\}`)

func pathParams(pattern string, u *url.URL) map[string]string {
	names := inBraces.FindAllStringSubmatch(pattern, -1)
	expr := regexp.QuoteMeta(pattern)
	for _, n := range names {
		expr = strings.Replace(expr, regexp.QuoteMeta("{"+n[1]+"}"), "([^/:]+)", 1)
	}
	re := regexp.MustCompile("^" + expr + "/?$")
	params := map[string]string{}
	if m := re.FindStringSubmatch(u.Path); m != nil {
		for i, n := range names {
			params[n[1]] = m[i+1]
		}
	}
	return params
}

func init() {
	openapi3filter.RegisterBodyDecoder("application/problem+json", func(r io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
		var v any
		err := json.NewDecoder(r).Decode(&v)
		return v, err
	})
}
