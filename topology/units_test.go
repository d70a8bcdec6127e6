package topology

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

func unitText(units []*codecs.UnitSet) (s []string) {
	for _, u := range units {
		s = append(s, fmt.Sprintf("%s/%s x%d", u.Stage, u.Topic, u.Partitions))
	}
	return s
}

func legText(legs []*codecs.Leg) (s []string) {
	for _, l := range legs {
		s = append(s, l.Stage+"/"+l.Topic)
	}
	return s
}

func TestUnitsAndUpstream(t *testing.T) {
	x := sample(t, "two-inputs")
	counts, err := x.Resolve(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"merge/left x4", "merge/right x2", "split-left/raw x4", "split-right/raw x4", "store/merged x4"},
		unitText(x.Units(counts)))
	require.Equal(t, []string{"feeder/raw x1"}, unitText(x.Upstream("raw", counts, 0)))
	require.Equal(t, []string{"feeder/raw x3"}, unitText(x.Upstream("raw", counts, 3)))
	require.Equal(t, []string{"split-right/raw x4"}, unitText(x.Upstream("right", counts, 1)))
	require.Equal(t, []string{"merge/left x4", "merge/right x2"}, unitText(x.Upstream("merged", counts, 1)))
	require.Equal(t, []string{"fraud/orders x6", "stock/orders x6"},
		unitText(sample(t, "diamond").Upstream("checked", Partitions{"orders": 6}, 1)))
}

func TestLegs(t *testing.T) {
	x := sample(t, "go-index")
	require.Equal(t, []string{"report/asts", "report/digests"}, legText(x.Legs()))
	require.Equal(t, []uint32{0}, x.ReachableLegs("parse", "paths"))
	require.Equal(t, []uint32{1}, x.ReachableLegs("digest", "paths"))
	require.Equal(t, []uint32{1}, x.ReachableLegs("report", "digests"), "an end stage reaches its own leg only")

	x = sample(t, "ledger")
	require.Equal(t, []string{"classify/decoded", "mirror/thumbnails", "publish/thumbnails"}, legText(x.Legs()))
	require.Equal(t, []uint32{0, 1, 2}, x.ReachableLegs("decode", "images"))
	require.Equal(t, []uint32{1, 2}, x.ReachableLegs("resize", "decoded"))
	n, ok := x.Leg("publish", "thumbnails")
	require.True(t, ok)
	require.EqualValues(t, 2, n)
	_, ok = x.Leg("decode", "images")
	require.False(t, ok)
	require.Equal(t, []string{"hourly/clicks.clean"}, legText(sample(t, "sink").Legs()), "a sink stage is an end")
}

func TestStart(t *testing.T) {
	x := sample(t, "ledger")
	real := map[string]int32{"images": 8, "decoded": 8, "thumbnails": 12, "audit": 1}
	resolve := func(topic string) (int32, error) { return real[topic], nil }

	start, err := x.Start("", resolve)
	require.NoError(t, err)
	require.Equal(t, "ledger", start.Mode)
	require.Equal(t, "thumbnails", start.Topology.Name)
	require.EqualValues(t, 3, start.Topology.Version)
	require.Equal(t, x.Digest(), start.Topology.Digest)
	require.Len(t, start.Legs, 3)
	require.Empty(t, start.Units)

	start, err = x.Start(ModeObserve, resolve)
	require.NoError(t, err)
	require.Contains(t, unitText(start.Units), "publish/thumbnails x12")
	require.Empty(t, start.Legs)

	start, err = x.Start(ModeCredit, resolve)
	require.NoError(t, err)
	require.Empty(t, start.Units)

	_, err = x.Start(ModeMarkers, resolve)
	require.ErrorContains(t, err, "topology thumbnails: start in mode markers: stages.classify.client: a foreign client")

	real["images"], real["thumbnails"] = 4, 0
	_, err = x.Start("", resolve)
	require.EqualError(t, err, "topology thumbnails: start: topics.images.partitions: declared with 8, has 4\n"+
		"topics.thumbnails: has no declared partitions, so it must exist, and it does not")
	_, err = x.Start("", func(string) (int32, error) { return 0, errors.New("no broker") })
	require.ErrorContains(t, err, "topics.audit: no broker")
}

func TestOrderAndGraph(t *testing.T) {
	order, err := sample(t, "diamond").Order()
	require.NoError(t, err)
	require.Equal(t, []string{"fraud", "stock", "price", "ship"}, order)
	_, err = sample(t, "retry-loop").Order()
	require.EqualError(t, err, "topology retry-loop: stages in a cycle: [again call]")

	edges, err := sample(t, "sink").Graph("hourly")
	require.NoError(t, err)
	require.Equal(t, Edges{Group: "clicks.hourly", Inputs: []string{"clicks.clean"}, Outputs: []string{"clicks.hourly"},
		Table: true}, edges)
	_, err = goIndex().Graph("nope")
	require.EqualError(t, err, `topology go-index: no stage "nope"`)
}
