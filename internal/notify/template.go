package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"time"

	machine "github.com/quiesce/quiesce/processors/notify"
)

// Template makes a mail. Both texts are text/template over MailData.
type Template struct {
	Subject string
	Body    string
}

// MailData is what a template sees.
type MailData struct {
	ID      string         // of the event
	Type    string         // batch.completed, ...
	Subject string         // batch or job id
	Time    time.Time      // append time of the event, UTC
	Data    map[string]any // of the event, names as on the wire; nil = it was too large
}

// builtin is the template of subscriptions that name none; Config.Templates[""] replaces it.
var builtin = Template{
	Subject: "{{.Subject}}: {{.Type}}",
	Body: `{{.Type}} of {{.Subject}} at {{.Time.Format "2006-01-02 15:04:05 MST"}}
{{with .Data}}{{with .step}}
step: {{.}}{{end}}{{with .state}}
state: {{.}}{{end}}{{with .reason}}
reason: {{.}}{{end}}{{with .counts}}
counts:{{range $k, $v := .}} {{$k}} {{$v}}{{end}}{{end}}
{{end}}
event {{.ID}}
`,
}

func (d *Deliverer) parse(name string, t Template) error {
	subject, err := template.New("subject").Option("missingkey=zero").Parse(t.Subject)
	if err != nil {
		return fmt.Errorf("notifications: template %q: %w", name, err)
	}
	body, err := template.New("body").Option("missingkey=zero").Parse(t.Body)
	if err != nil {
		return fmt.Errorf("notifications: template %q: %w", name, err)
	}
	d.templates[name] = &mailTemplate{subject, body}
	return nil
}

// render makes subject (one line) and body of a mail.
func (d *Deliverer) render(n *machine.Delivery) (subject, body string, err error) {
	t, ok := d.templates[n.Subscription.Template]
	if !ok {
		return "", "", fmt.Errorf("template %q is not known here", n.Subscription.Template)
	}
	data := MailData{ID: n.ID, Type: n.Type, Subject: n.Subject, Time: time.UnixMilli(n.Time).UTC()}
	if len(n.Data) > 0 {
		if err := json.Unmarshal(n.Data, &data.Data); err != nil {
			return "", "", fmt.Errorf("data of the event: %w", err)
		}
	}
	var s, b strings.Builder
	if err := t.subject.Execute(&s, data); err != nil {
		return "", "", err
	}
	if err := t.body.Execute(&b, data); err != nil {
		return "", "", err
	}
	return strings.Join(strings.Fields(s.String()), " "), b.String(), nil
}
