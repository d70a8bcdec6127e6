package sidecar

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/quiesce/quiesce/internal/sidecar/api"
)

// authorize asks for the token, compared in constant time. With client certificates the handshake has decided already.
func (s *Server) authorize(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.cfg.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Token != "" {
			scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			got := sha256.Sum256([]byte(strings.TrimSpace(token)))
			if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="quiesce"`)
				writeProblem(w, &api.Problem{Type: api.ProblemAuth, Title: "Unauthorized", Status: 401,
					Detail: "send the deployment's token: Authorization: Bearer <token>"})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// guardOrigin keeps other web sites away from an unguarded loopback port: a foreign name in Host (DNS rebinding) and
// cross-origin writes are refused. It also sets the headers that every answer has.
func (s *Server) guardOrigin(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'")
		if !s.cfg.guarded() && !loopback(hostOnly(r.Host)) {
			writeProblem(w, forbidden("host "+r.Host+" is not this machine; use localhost, or set a token"))
			return
		}
		if err := cross.Check(r); err != nil {
			writeProblem(w, forbidden(err.Error()))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func forbidden(detail string) *api.Problem {
	return &api.Problem{Type: api.ProblemForbidden, Title: "Forbidden", Status: 403, Detail: detail}
}

// hostOnly removes the port and the brackets of an IPv6 address.
func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// recoverPanics answers 500 and logs the stack. http.ErrAbortHandler goes on.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			s.cfg.Logger.Error("handler panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			writeProblem(w, &api.Problem{Type: api.ProblemInternal, Title: "Internal error", Status: 500})
		}()
		next.ServeHTTP(w, r)
	})
}
