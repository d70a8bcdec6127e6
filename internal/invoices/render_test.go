package invoices

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/notify"
	"github.com/quiesce/quiesce/processors/worker"
)

// kit are the handlers of a worker, a folder and a sink.
type kit struct {
	*work
	sink   *Sink
	folder Folder
}

func setup(t *testing.T, busy int) *kit {
	sink, err := StartSink("127.0.0.1:0", busy)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sink.Close()) })
	out := t.TempDir()
	w := &work{cfg: ServiceConfig{Out: out, SMTP: notify.SMTP{Addr: sink.Address(), From: "invoices@example.com", Plain: true}}}
	return &kit{work: w, sink: sink, folder: JobFolder(out, "j")}
}

func subjob(t *testing.T, c *Customer) *worker.Task {
	b, err := json.Marshal(c)
	require.NoError(t, err)
	return &worker.Task{Job: "j", Step: StepRender, Payload: &codecs.Payload{Data: b}}
}

var ada = &Customer{ID: "a", Name: "Ada", Orders: []Order{{Order: "1", Date: "2026-11-02", Item: "paper", Quantity: "4", Price: "2.50", Mail: "a@example.com"}}}

func TestSubjobLeavesInvoiceMailAndReceiptOnce(t *testing.T) {
	k := setup(t, 0)
	for range 3 { // delivered again and again
		_, err := k.render(t.Context(), subjob(t, ada))
		require.NoError(t, err)
	}
	b, err := os.ReadFile(k.folder.Invoice("a"))
	require.NoError(t, err)
	require.Contains(t, pages(t, b), "(10.00)")
	mails := k.sink.Mails()
	require.Len(t, mails, 1)
	m := mails[MessageID("j", "a")]
	require.Equal(t, "a@example.com", m.To)
	require.Equal(t, "Invoice j/a", m.Subject)
	require.Greater(t, m.Bytes, len(b), "the invoice is in it")
	require.Equal(t, 1, m.Count)
	got, err := k.folder.readReceipt("a")
	require.NoError(t, err)
	require.Equal(t, &receipt{Customer: "a", Number: "j/a", Orders: 1, Cents: 1000}, got)
	left, err := os.ReadDir(filepath.Dir(k.folder.Invoice("a")))
	require.NoError(t, err)
	require.Len(t, left, 1, "no parts of files")
}

// A worker that dies between mail and receipt sends the mail again, under the same id; the invoice has the same bytes.
func TestMailIsSentAgainWithoutReceipt(t *testing.T) {
	k := setup(t, 0)
	_, err := k.render(t.Context(), subjob(t, ada))
	require.NoError(t, err)
	before, err := os.ReadFile(k.folder.Invoice("a"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(k.folder.receipt("a")))
	_, err = k.render(t.Context(), subjob(t, ada))
	require.NoError(t, err)
	after, err := os.ReadFile(k.folder.Invoice("a"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Len(t, k.sink.Mails(), 1)
	require.Equal(t, 2, k.sink.Mails()[MessageID("j", "a")].Count)
}

func TestBrokenCustomerFailsWithoutAnotherAttempt(t *testing.T) {
	k := setup(t, 0)
	broken := &Customer{ID: "b", Name: "Barbara", Orders: []Order{{Order: "2"}}}
	_, err := k.render(t.Context(), subjob(t, broken))
	require.EqualError(t, err, "customer b: no mail address")
	require.True(t, final(t, err))
	f, ok := failureOf(err.Error())
	require.True(t, ok)
	require.Equal(t, Failure{"b", "no mail address"}, f)
	require.Empty(t, k.sink.Mails())
	require.NoFileExists(t, k.folder.Invoice("b"))
	_, ok = failureOf("delivered 4 times without an end")
	require.False(t, ok)
}

func TestBusyServerIsTriedAgain(t *testing.T) {
	k := setup(t, 1)
	_, err := k.render(t.Context(), subjob(t, ada))
	require.ErrorContains(t, err, "451")
	require.False(t, final(t, err))
	require.Equal(t, 1, k.sink.Refused())
	_, err = k.render(t.Context(), subjob(t, ada))
	require.NoError(t, err)
	require.Len(t, k.sink.Mails(), 1)

	require.NoError(t, os.Remove(k.folder.receipt("a")))
	k.cfg.SMTP.From = "nobody"
	_, err = k.render(t.Context(), subjob(t, ada))
	require.True(t, final(t, err), "%v", err)
}

// final runs an error through a worker: it is final when a task with attempts left ends failed.
func final(t *testing.T, err error) bool {
	t.Helper()
	f := worker.Fail(errors.New("x"))
	for e := err; e != nil; e = errors.Unwrap(e) {
		if reflect.TypeOf(e) == reflect.TypeOf(f) {
			return true
		}
	}
	return false
}

func TestSplitListsEveryCustomerOnceInEitherOrder(t *testing.T) {
	k := setup(t, 0)
	customers := []*Customer{ada, {ID: "b", Name: "Barbara"}, {ID: "c", Name: "Grace"}}
	require.NoError(t, k.folder.writeCustomers(customers))
	input, err := json.Marshal(map[string]any{"job": "j", "steps": map[string]any{StepPrepare: map[string]any{"result": map[string]any{"reference": k.folder.customers()}}}})
	require.NoError(t, err)
	list := func() (ids []string) {
		err := k.split(context.Background(), &worker.Task{Job: "j", Payload: &codecs.Payload{Data: input}}, func(m *codecs.ManifestTask) error {
			ids = append(ids, m.Id)
			return nil
		})
		require.NoError(t, err)
		return ids
	}
	require.Equal(t, []string{"a", "b", "c"}, list())
	k.cfg.Reverse = true
	require.Equal(t, []string{"c", "b", "a"}, list())
}
