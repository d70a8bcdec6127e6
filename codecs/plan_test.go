package codecs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

func TestPlanReadsWhatItPrints(t *testing.T) {
	p := &codecs.Plan{Mode: "markers", Topology: "go@index", Version: 3, Feeders: 2,
		Partitions: map[string]int32{"paths": 4, "a.b-c_d": 16}}
	require.Equal(t, "markers;go@index@3;2;a.b-c_d=16,paths=4", p.String())
	got, err := codecs.ParsePlan(p.String())
	require.NoError(t, err)
	require.Equal(t, p, got)
}

func TestPlanRefusesWhatItCannotPrint(t *testing.T) {
	for _, s := range []string{"", "markers", "markers;t@1;1;", "markers;t@1;0;a=1", "markers;t@1;9999999;a=1", "markers;t;1;a=1",
		"markers;t@x;1;a=1", "markers;t@1;1;a", "markers;t@1;1;a=0", "markers;t@1;1;a=-1", "markers;t@1;1;a/b=1", ";t@1;1;a=1"} {
		_, err := codecs.ParsePlan(s)
		require.ErrorContains(t, err, "quiesce-mode", s)
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add("markers;go-index@1;1;asts=4,paths=4")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := codecs.ParsePlan(s)
		if err != nil {
			return
		}
		again, err := codecs.ParsePlan(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}
