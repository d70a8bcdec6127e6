package invoices

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/mail"
	"sync"

	"github.com/emersion/go-smtp"
	"golang.org/x/sync/errgroup"
)

// Sink is a mail server that keeps no mail: it counts.
type Sink struct {
	busy     int // every busy-th new message is refused once, with a code that means: try again; 0 = none
	server   *smtp.Server
	listener net.Listener
	group    errgroup.Group

	mu      sync.Mutex
	taken   map[string]*Mail
	seen    map[string]bool // message ids, those that were refused, too
	refused int
}

// Mail is what a sink knows of the messages with one id.
type Mail struct {
	To      string
	Subject string
	Bytes   int
	Count   int // times that it was taken
}

// StartSink listens on an address of this machine. It is busy for every busy-th new message: that one is taken when it
// comes again; 0 = never.
func StartSink(listen string, busy int) (*Sink, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("mail sink: %w", err)
	}
	s := &Sink{busy: busy, listener: l, taken: map[string]*Mail{}, seen: map[string]bool{}}
	s.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &visit{sink: s}, nil }))
	s.server.Domain = "localhost"
	s.server.MaxMessageBytes = 16 << 20
	s.server.ErrorLog = log.New(io.Discard, "", 0) // a client that goes away is no news
	s.group.Go(func() error { return s.server.Serve(l) })
	return s, nil
}

// Address is host:port.
func (s *Sink) Address() string { return s.listener.Addr().String() }

// Close ends it and every connection.
func (s *Sink) Close() error {
	err := s.server.Close()
	if end := s.group.Wait(); !errors.Is(end, smtp.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// Mails returns what was taken, by Message-ID.
func (s *Sink) Mails() map[string]Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Mail, len(s.taken))
	for id, m := range s.taken {
		all[id] = *m
	}
	return all
}

// Refused is how many messages were told to come again.
func (s *Sink) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// take counts one message.
func (s *Sink) take(id string, m Mail) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seen[id] {
		s.seen[id] = true
		if s.busy > 0 && len(s.seen)%s.busy == 0 {
			s.refused++
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "busy, try again"}
		}
	}
	if old := s.taken[id]; old != nil {
		old.Count++
		return nil
	}
	m.Count = 1
	s.taken[id] = &m
	return nil
}

// visit is one connection.
type visit struct {
	sink *Sink
	to   string
}

var _ smtp.Session = (*visit)(nil)

func (v *visit) Reset()                                    { v.to = "" }
func (v *visit) Logout() error                             { return nil }
func (v *visit) Mail(string, *smtp.MailOptions) error      { return nil }
func (v *visit) Rcpt(to string, _ *smtp.RcptOptions) error { v.to = to; return nil }

func (v *visit) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "no message: " + err.Error()}
	}
	n, err := io.Copy(io.Discard, m.Body)
	if err != nil {
		return err
	}
	id := m.Header.Get("Message-Id")
	if len(id) < 3 || id[0] != '<' || id[len(id)-1] != '>' {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "no Message-ID"}
	}
	return v.sink.take(id[1:len(id)-1], Mail{To: v.to, Subject: m.Header.Get("Subject"), Bytes: int(n)})
}
