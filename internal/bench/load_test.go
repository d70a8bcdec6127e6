package bench

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

// every index of every batch is reported exactly once, after START and seal, with no more batches open than asked.
func TestLoadReportsEveryTaskOnce(t *testing.T) {
	for _, cfg := range []Config{
		{N: 1003, K: 1, Batches: 10, Order: Random},
		{N: 1003, K: 7, Batches: 10, Active: 3, Order: Random},
		{N: 25_000, K: 100, Batches: 1, Order: Sequential},
	} {
		cfg = cfg.WithDefaults("ingest")
		require.NoError(t, cfg.Validate())
		seen, total := map[string]*roaring.Bitmap{}, map[string]uint32{}
		open, most := 0, 0
		l := &load{cfg: cfg, rng: rand.New(rand.NewPCG(1, 1)), emit: func(key string, ev *codecs.Event) error {
			switch d := ev.Data.(type) {
			case *codecs.BatchStart:
				seen[key] = roaring.New()
				open++
				most = max(most, open)
			case *codecs.BatchSeal:
				total[key] = d.Total
			case *codecs.BatchReport:
				b := roaring.BitmapOf(d.Items[0].First)
				if d.Items[0].Bitmap != nil {
					require.NoError(t, b.UnmarshalBinary(d.Items[0].Bitmap))
				}
				require.False(t, seen[key].Intersects(b))
				seen[key].Or(b)
				if seen[key].GetCardinality() == uint64(total[key]) {
					open--
				}
			}
			return nil
		}}
		require.NoError(t, l.run())
		sum := 0
		for key, b := range seen {
			require.Equal(t, uint64(total[key]), b.GetCardinality())
			require.Equal(t, total[key]-1, b.Maximum())
			sum += int(b.GetCardinality())
		}
		require.Equal(t, cfg.N, sum)
		require.Equal(t, cfg.Active, most)
	}
}

func TestConfigNamesWhatCannotWork(t *testing.T) {
	err := Config{N: 5, K: -1, Batches: 9, Active: 10, Order: "sideways", Partitions: -1}.Validate()
	for _, want := range []string{"k -1", "batches 9", "active 10", `order "sideways"`, "partitions -1"} {
		require.ErrorContains(t, err, want)
	}
	for _, s := range []string{"latency", "ingest", "hot"} {
		require.NoError(t, Config{}.WithDefaults(s).Validate(), s)
	}
}

func TestQuantile(t *testing.T) {
	var d []time.Duration
	for i := 100; i > 0; i-- {
		d = append(d, time.Duration(i)*time.Millisecond)
	}
	require.Equal(t, 50.0, quantile(d, 0.5))
	require.Equal(t, 99.0, quantile(d, 0.99))
	require.Equal(t, 0.0, quantile(nil, 0.5))
	require.Equal(t, 1.23e6, round(1234567))
}
