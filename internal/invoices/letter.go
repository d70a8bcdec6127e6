package invoices

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/wneessen/go-mail"

	"github.com/quiesce/quiesce/internal/notify"
)

// MessageID names the mail with a customer's invoice: the same however often it is sent.
func MessageID(job, customer string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", job, customer))
	return fmt.Sprintf("invoice.%x@quiesce", sum[:16])
}

// send mails the invoice that stands in a file. notify.Retryable tells whether to try an error again.
func send(ctx context.Context, server notify.SMTP, job string, b *Bill, file string) error {
	m := mail.NewMsg()
	if err := m.From(server.From); err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	if err := m.To(b.Mail); err != nil {
		return fmt.Errorf("recipient: %w", err)
	}
	m.SetMessageIDWithValue(MessageID(job, b.Customer))
	m.SetDateWithValue(b.Date)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.Subject("Invoice " + b.Number)
	m.SetBodyString(mail.TypeTextPlain, fmt.Sprintf("Dear %s,\n\nyour invoice %s over %s is attached.\n", b.Name, b.Number, b.Total))
	m.AttachFile(file, mail.WithFileName(b.Customer+".pdf"), mail.WithFileContentType("application/pdf"))
	return server.Send(ctx, m)
}
