package conformance

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	scripts "github.com/quiesce/quiesce/testdata/conformance"
)

func TestAllScriptsLoad(t *testing.T) {
	all, err := Load(scripts.FS)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, s := range all {
		require.NotEmpty(t, s.Source, s.ID)
	}
}

func TestBadScriptsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"id: X1\n": "not like C07",
		"id: C01\ntitle: t\nsteps: [{of: a}]\nexpect: [{state: open}]\n":                       "one of send, await, absent, settle, propose and take",
		"id: C01\ntitle: t\nsteps: [{send: batch.seal, each: 9-1}]\nexpect: [{state: open}]\n": "LO-HI",
		"id: C01\ntitle: t\nsteps: [{send: batch.seal}]\nexpect: [{of: z, state: open}]\n":     `about "z"`,
		"id: C01\ntitle: t\nstepps: []\n":                                                      "stepps",
		"id: C02\ntitle: t\nsteps: [{send: batch.seal}]\nexpect: [{state: open}]\n":            "the file says",
	} {
		_, err := Load(fstest.MapFS{"C01.yaml": {Data: []byte(text)}})
		require.ErrorContains(t, err, want)
	}
}

func TestBodyNumbersItsItems(t *testing.T) {
	s := Step{Send: "batch.report", Data: map[string]any{"items": []any{map[string]any{"first": "$i"}}}}
	b, err := s.body(map[string]string{"$i": "42"})
	require.NoError(t, err)
	require.JSONEq(t, `{"items":[{"first":42}]}`, string(b))
}

// an expectation finds each kind of difference, and nothing in what is as expected.
func TestCheckFindsDifferences(t *testing.T) {
	s := newSeen()
	s.add("batch.completed", "x", &codecs.BatchEvent{State: codecs.State_completed, Counts: &codecs.Counts{Total: 3, Ok: 3}, Audit: &codecs.Audit{Late: 1}})
	s.add("batch.completed", "x", &codecs.BatchEvent{State: codecs.State_completed, Counts: &codecs.Counts{Total: 3, Ok: 3}, Audit: &codecs.Audit{Late: 1}})
	yes := true
	good := Expectation{Of: "a", Events: map[string]int{"batch.completed": 1}, State: "completed", Counts: map[string]uint32{"ok": 3}, Audit: map[string]uint64{"late": 1}}
	require.Empty(t, good.check(s))
	for _, bad := range []Expectation{
		{}, // an end that is not named
		{Events: map[string]int{"batch.completed": 2}},
		{Events: map[string]int{"batch.completed": 1}, State: "failed"},
		{Events: map[string]int{"batch.completed": 1}, Counts: map[string]uint32{"ok": 2}},
		{Events: map[string]int{"batch.completed": 1}, Counts: map[string]uint32{"nonsense": 0}},
		{Events: map[string]int{"batch.completed": 1}, Audit: map[string]uint64{"late": 0}},
		{Events: map[string]int{"batch.completed": 1}, Empty: &yes},
		{Events: map[string]int{"batch.completed": 1}, Round: 2},
		{Events: map[string]int{"batch.completed": 1}, Reason: "because"},
		{Events: map[string]int{"batch.completed": 1}, DeadLetters: 1},
	} {
		require.NotEmpty(t, bad.check(s), "%+v", bad)
	}
	require.NotEmpty(t, (&Expectation{State: "open"}).check(newSeen()))
	odd := newSeen()
	odd.add("batch.progress", "y", &codecs.BatchEvent{Counts: &codecs.Counts{Total: 3, Pending: 1, Ok: 1}})
	require.Equal(t, []string{"a: batch.progress: 2 of 3 tasks in its counts"}, (&Expectation{Of: "a"}).check(odd))
}
