package invoices

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A few hundred customers, some of them broken, a busy mail server: what comes out is what a plain loop says.
func TestJobAgreesWithThePlainLoop(t *testing.T) {
	var seen []Progress
	out := t.TempDir()
	r, err := Run(t.Context(), Config{Seed: Seed{Customers: customers(400), Broken: 0.03}, Out: out, Busy: 50,
		Watch: func(p Progress) { seen = append(seen, p) }})
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Equal(t, "completed_with_failures", r.State)
	require.Equal(t, customers(400), r.Totals.Customers)
	require.Len(t, r.Totals.Failures, customers(400)*3/100)
	require.Equal(t, r.Totals.Invoices+1, r.Mails, "and the manager's")
	require.Equal(t, map[string]int{"job.requested": 1, "job.started": 1, "step.started": 3, "step.completed": 3, "job.completed": 1}, r.Notes)
	require.Positive(t, r.Refused)
	require.Greater(t, int(r.Stats.Tasks.Attempts), r.Totals.Customers, "busy is tried again")
	require.NotEmpty(t, seen[0].Sidecar)
	require.Nil(t, seen[0].Job)
	require.Equal(t, "november", seen[len(seen)-1].Job.Job)
	b, err := os.ReadFile(JobFolder(out, "november").Report())
	require.NoError(t, err)
	require.Contains(t, string(b), "| total | "+r.Plain.Cents.String()+" |")

	_, err = Run(t.Context(), Config{Out: out})
	require.ErrorContains(t, err, "there is a job of that name")
}

// customers is n, or 10,000 in the long variant.
func customers(n int) int {
	if os.Getenv("QUIESCE_TEST_LONG") != "" {
		return 10_000
	}
	return n
}

// A file without a row has nobody to serve: the job completes.
func TestNoOrders(t *testing.T) {
	name := filepath.Join(t.TempDir(), "orders.csv")
	require.NoError(t, os.WriteFile(name, []byte("customer,name,mail,order,date,item,quantity,price\n"), 0o600))
	r, err := Run(t.Context(), Config{Orders: name})
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Equal(t, "completed", r.State)
	require.Zero(t, r.Totals.Customers)
}

// A file that is none fails the job in its first step, and says why.
func TestNotAFileOfOrders(t *testing.T) {
	name := filepath.Join(t.TempDir(), "orders.csv")
	require.NoError(t, os.WriteFile(name, []byte("a,b\n1,2\n"), 0o600))
	r, err := Run(t.Context(), Config{Orders: name})
	require.NoError(t, err)
	require.Equal(t, "failed", r.State)
	require.Contains(t, r.Reason, `no column "customer"`)
	require.Nil(t, r.Totals)
}

func TestRunRefusesWhatCannotBe(t *testing.T) {
	for _, cfg := range []Config{{Orders: "/nowhere.csv"}, {Job: "a b"}, {Seed: Seed{Broken: 2}}, {Workers: -1}, {Manager: "nobody"}} {
		_, err := Run(context.Background(), cfg)
		require.Error(t, err)
	}
}
