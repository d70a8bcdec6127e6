package codecs_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quiesce/quiesce/codecs"
)

func sketchOf(t require.TestingT, values ...float64) []byte {
	s := codecs.NewSketch()
	for _, v := range values {
		s.Add(v)
	}
	b, err := s.AppendBinary(nil)
	require.NoError(t, err)
	return b
}

func TestSketchMergesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 20), 1, 8).Draw(t, "sketches")
		a, b, whole := codecs.NewSketch(), codecs.NewSketch(), codecs.NewSketch()
		for i := range all {
			require.NoError(t, a.Merge(sketchOf(t, all[i]...)))
			require.NoError(t, b.Merge(sketchOf(t, all[len(all)-1-i]...)))
			for _, v := range all[i] {
				whole.Add(v)
			}
		}
		x, _ := a.AppendBinary(nil)
		y, _ := b.AppendBinary(nil)
		z, _ := whole.AppendBinary(nil)
		require.Equal(t, x, y)
		require.Equal(t, x, z)
		require.EqualValues(t, len(slices.Concat(all...)), a.Count())
	})
}

func TestSketchIsAccurate(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := codecs.NewSketch()
	var all []float64
	sum := 0.0
	for range 10_000 {
		v := rnd.ExpFloat64() * 60_000
		all, sum = append(all, v), sum+v
		s.Add(v)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
		want := all[int(q*float64(len(all)-1))]
		require.InEpsilon(t, want, s.Quantile(q), codecs.SketchAccuracy+1e-9, "q %g", q)
	}
	require.InEpsilon(t, sum, s.Sum(), codecs.SketchAccuracy)
	b, err := s.AppendBinary(nil)
	require.NoError(t, err)
	require.Less(t, len(b), 16<<10)
}

func TestSketchTakesOtherMappings(t *testing.T) {
	d, err := ddsketch.NewDefaultDDSketch(0.02)
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, d.Add(float64(i+1)))
	}
	b, err := proto.Marshal(d.ToProto())
	require.NoError(t, err)
	s := codecs.NewSketch()
	require.NoError(t, s.Merge(b))
	require.EqualValues(t, 100, s.Count())
	require.InEpsilon(t, 50, s.Quantile(0.5), 0.05)
}

func TestSketchRefusesWhatIsNone(t *testing.T) {
	mapping := &sketchpb.IndexMapping{Gamma: 1.02}
	for name, m := range map[string]*sketchpb.DDSketch{
		"no mapping":     {ZeroCount: 1},
		"bad gamma":      {Mapping: &sketchpb.IndexMapping{Gamma: 0.5}},
		"far bin":        {Mapping: mapping, PositiveValues: &sketchpb.Store{BinCounts: map[int32]float64{1 << 30: 1}}},
		"negative count": {Mapping: mapping, ZeroCount: 5, PositiveValues: &sketchpb.Store{BinCounts: map[int32]float64{3: -1}}},
	} {
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		s := codecs.NewSketch()
		s.Add(7)
		require.Error(t, s.Merge(b), name)
		require.EqualValues(t, 1, s.Count(), name)
	}
	require.Error(t, codecs.NewSketch().Merge([]byte("junk")))
}

func FuzzSketchMerge(f *testing.F) {
	f.Add(sketchOf(f, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := codecs.NewSketch()
		if s.Merge(b) != nil {
			require.Zero(t, s.Count())
		}
		require.GreaterOrEqual(t, s.Quantile(1), 0.0)
	})
}
