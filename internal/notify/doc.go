// Package notify delivers notifications: it handles the tasks of kind "delivery" that the notifier puts into the queue
// work.notify (package processors/notify). One call is one attempt; the queue has the retries.
//
//	d, err := notify.New(notify.Config{Secrets: map[string]string{"ops": "whsec_..."}})
//	err = d.Deliver(ctx, task)
//	switch {
//	case err == nil:             // delivered
//	case notify.Retryable(err):  // the endpoint may do better later
//	default:                     // it never will: the task goes to the dead letter
//	}
//
// # Webhooks (https://, http://)
//
// POST with JSON and the headers of Standard Webhooks 1.0:
//
//	webhook-id         the event's id: the same for every attempt, so a receiver can drop repeats
//	webhook-timestamp  of the attempt, seconds since the epoch
//	webhook-signature  v1,<base64 of HMAC-SHA256 over id.timestamp.body>, when the subscription names a secret
//
//	{"id","type","timestamp","subject","data"}     timestamp = append time of the event, RFC 3339
//
// Any 2xx is a delivery. 408, 425, 429, 5xx and failures of the network are retryable, all else is not; redirects are not
// followed. Private, loopback and other special addresses are refused unless Config.AllowPrivate. The check is made on
// the address that is dialled, so a name that resolves to something else at the second look does not pass. Plain http is
// for private networks: it needs AllowPrivate, too.
//
// # Mail (mailto:a@b,c@d)
//
// Through Config.SMTP, with subject and body from a text template (Template). The Message-ID is made of the event's id
// and the recipients: a mail sent twice has one id.
//
// # Commands (exec:name)
//
// Off unless Config.Commands names them: the delivery on stdin, QUIESCE_EVENT_ID, _TYPE and _SUBJECT in the environment. Exit 0 is
// a delivery, 20 is not retryable, all else is retryable. The process group is killed when the time is up.
package notify
