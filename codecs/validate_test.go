package codecs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func faults(t *testing.T, name string, m proto.Message) map[string]string {
	err := Validate(&Event{Type: name, Key: "b-7", Data: m})
	out := map[string]string{}
	if err == nil {
		return out
	}
	var es FieldErrors
	require.ErrorAs(t, err, &es)
	for _, e := range es {
		out[e.Pointer] = e.Reason
	}
	return out
}

func TestValidateAcceptsWhatIsRight(t *testing.T) {
	for name, ms := range map[string][]proto.Message{
		TypeBatchStart: {
			&BatchStart{Run: "r"},
			&BatchStart{Run: "01J9ZK", Mode: "markers", Topology: &TopologyRef{Name: "go-index", Version: 1}, Feeders: 2,
				ReuseOpen: "supersede", Reuse: "only-after-failure", Policy: &Policy{Kind: "tolerate", Tolerate: "0.25%", MinSample: 10},
				Deadlines: &Deadlines{SealBy: 5}, OnDeadline: "close", Labels: map[string]string{"team": "a b/c"},
				Owner: &Owner{Job: "j", Step: "s"}, Notify: []*Subscription{{Event: "batch.*", Url: "https://example.com"}},
				Units: []*UnitSet{{Stage: "s", Topic: "t", Partitions: 4}}, Legs: []*Leg{{Stage: "s", Topic: "t"}}, Queue: "q"},
		},
		TypeBatchSeal:    {&BatchSeal{Run: "r"}, &BatchSeal{Run: "r", Feeder: 3, Total: 4294967295, Fingerprint: make([]byte, 16)}},
		TypeBatchReport:  {itemsReport(), &BatchReport{Run: "r", Children: &Children{Count: 1}}, &BatchReport{Run: "r", Items: []*ReportItem{{Reason: strings.Repeat("x", 1e6), Outcome: Failed}}}},
		TypeBatchEnd:     {&BatchEnd{Run: "r", Unit: &Unit{Stage: "s", Topic: "t"}, Consumed: 1, Failed: 1, Produced: map[string]uint64{"u": 2}}},
		TypeBatchCommand: {&BatchCommand{Id: "c", Verb: "cancel"}, &BatchCommand{Id: "c", Verb: "extend", Args: &CommandArgs{Deadlines: &Deadlines{CompleteBy: 1}}}},
		TypeBatchNudge:   {&BatchNudge{}},
		TypeJobRequested: {&JobRequested{Type: "invoices"}},
	} {
		for _, m := range ms {
			require.Empty(t, faults(t, name, m), "%s %v", name, m)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	last := uint32(1)
	for _, c := range []struct {
		name string
		m    proto.Message
		want []string
	}{
		{TypeBatchStart, &BatchStart{}, []string{"/run"}},
		{TypeBatchStart, &BatchStart{Run: "a b", Mode: "magic", Feeders: 1025, ReuseOpen: "x", Reuse: "y", OnDeadline: "z"},
			[]string{"/run", "/mode", "/feeders", "/reuse_open", "/reuse", "/on_deadline"}},
		{TypeBatchStart, &BatchStart{Run: "r", Policy: &Policy{Kind: "hope"}, Deadlines: &Deadlines{CompleteBy: -1}, Retention: -1},
			[]string{"/policy/kind", "/deadlines/complete_by", "/retention"}},
		{TypeBatchStart, &BatchStart{Run: "r", Policy: &Policy{Kind: "tolerate", Tolerate: "many"}}, []string{"/policy/tolerate"}},
		{TypeBatchStart, &BatchStart{Run: "r", Policy: &Policy{Tolerate: "5"}}, []string{"/policy/tolerate"}},
		{TypeBatchStart, &BatchStart{Run: "r", Topology: &TopologyRef{}, Owner: &Owner{}}, []string{"/topology/name", "/owner/job"}},
		{TypeBatchStart, &BatchStart{Run: "r", Labels: map[string]string{"a/b": "x", "ok": strings.Repeat("x", 1025)}}, []string{"/labels/a~1b", "/labels/ok"}},
		{TypeBatchStart, &BatchStart{Run: "r", Notify: make5()}, []string{"/notify", "/notify/0/event", "/notify/0/url"}},
		{TypeBatchStart, &BatchStart{Run: "r", Units: []*UnitSet{{Stage: "s", Topic: "a b"}, {Stage: "s", Topic: "t", Partitions: 20000}}},
			[]string{"/units/0/topic", "/units/0/partitions", "/units"}},
		{TypeBatchStart, &BatchStart{Run: "r", Legs: make([]*Leg, 17)}, []string{"/legs"}},
		{TypeBatchSeal, &BatchSeal{Feeder: 1024, Fingerprint: []byte{1}}, []string{"/run", "/feeder", "/fingerprint"}},
		{TypeBatchReport, &BatchReport{Run: "r"}, []string{"/items"}},
		{TypeBatchReport, &BatchReport{Run: "r", Reporter: strings.Repeat("x", 1025), Feeder: 1024, Items: []*ReportItem{{}}}, []string{"/reporter", "/feeder"}},
		{TypeBatchReport, &BatchReport{Run: "r", Items: []*ReportItem{{}, {First: 5, Last: &last}}}, []string{"/items/1/last"}},
		{TypeBatchReport, &BatchReport{Run: "r", Items: []*ReportItem{{Outcome: 99}, {Outcome: -1}, {Leg: 16}}},
			[]string{"/items/0/outcome", "/items/1/outcome", "/items/2/leg"}},
		{TypeBatchReport, &BatchReport{Run: "r", Items: []*ReportItem{{Bitmap: []byte("nonsense")}}}, []string{"/items/0/bitmap"}},
		{TypeBatchReport, &BatchReport{Run: "r", Items: []*ReportItem{NewItem(0, 4294967295, OK)}}, []string{"/items"}},
		{TypeBatchReport, &BatchReport{Run: "r", Items: []*ReportItem{NewItem(0, 1<<26-1, OK), NewItem(1<<31, 1<<31, OK)}}, []string{"/items"}},
		{TypeBatchEnd, &BatchEnd{}, []string{"/run", "/unit"}},
		{TypeBatchEnd, &BatchEnd{Run: "r", Unit: &Unit{Stage: "/"}, Consumed: 1, Failed: 2, Produced: map[string]uint64{"a/b": 1}},
			[]string{"/unit/stage", "/unit/topic", "/failed", "/produced/a~1b"}},
		{TypeBatchCommand, &BatchCommand{}, []string{"/id", "/verb"}},
		{TypeBatchCommand, &BatchCommand{Id: strings.Repeat("x", 257), Verb: "fly"}, []string{"/id", "/verb"}},
		{TypeBatchCommand, &BatchCommand{Id: "c", Verb: "extend"}, []string{"/args/deadlines"}},
		{TypeBatchCommand, &BatchCommand{Id: "c", Verb: "policy"}, []string{"/args/policy"}},
		{TypeBatchCommand, &BatchCommand{Id: "c", Verb: "redrive", Args: &CommandArgs{Run: "/", Outcomes: []string{"lost", "okay", ""}}},
			[]string{"/args/run", "/args/outcomes/1", "/args/outcomes/2"}},
		{TypeJobRequested, &JobRequested{Customer: "/", AwaitBatches: []string{"a", ""}}, []string{"/type", "/customer", "/await_batches/1"}},
		{TypeJobCommand, &JobCommand{Id: "c", Verb: "fly"}, []string{"/verb"}},
		{TypeTaskCompleted, &TaskCompleted{}, []string{"/step", "/outcome"}},
		{TypeSplitProposed, &SplitProposed{Step: "s", Digest: []byte{1}}, []string{"/digest"}},
	} {
		got := faults(t, c.name, c.m)
		for _, p := range c.want {
			require.Contains(t, got, p, "%s %v: %v", c.name, c.m, got)
		}
		if len(c.want) < 3 && c.name != TypeBatchStart {
			require.Len(t, got, len(c.want), "%v", got)
		}
	}
	require.EqualError(t, Validate(&Event{Type: TypeBatchNudge, Key: "a b", Data: &BatchNudge{}}),
		`key: batch or job id "a b": 1 to 128 of A-Z a-z 0-9 . _ @ = + -, starting with a letter or digit`)
	many := &BatchReport{Run: "r", Items: make([]*ReportItem, 1000)}
	for i := range many.Items {
		many.Items[i] = &ReportItem{Outcome: 99}
	}
	require.Len(t, faults(t, TypeBatchReport, many), maxFieldErrors, "the list of faults is bounded")
}

func make5() []*Subscription { return []*Subscription{{}, {}, {}, {}, {}} }

func TestParseTolerate(t *testing.T) {
	for s, want := range map[string]uint32{"0": 0, "5": 5, "1%": 10_000, "0.25%": 2_500, "100%": 1_000_000, "0.0001%": 1} {
		n, millionths, err := ParseTolerate(s)
		require.NoError(t, err, s)
		require.Equal(t, want, n, s)
		require.Equal(t, strings.HasSuffix(s, "%"), millionths)
	}
	for _, s := range []string{"", "%", "-1", "1.5", "101%", "100.0001%", ".5%", "1.%", "0.00001%", "1e2%", "x%", "4294967296"} {
		_, _, err := ParseTolerate(s)
		require.Error(t, err, s)
	}
}
