package bench

import (
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/processors/batch"
)

// BenchmarkStep is decoding and folding one completion a record, without any broker.
func BenchmarkStep(b *testing.B) {
	cfg := Config{N: 100_000, Batches: 100}.WithDefaults(Ingest)
	var recs []*kgo.Record
	l := &load{cfg: cfg, rng: rand.New(rand.NewPCG(1, 1)), emit: func(key string, ev *codecs.Event) error {
		rec, err := codecs.Encode("t", key, "/quiesce/q/bench", ev)
		recs = append(recs, wire(&rec))
		return err
	}}
	if err := l.run(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	s := newStepper(batch.New(batch.Config{}))
	for i := range b.N {
		if i%len(recs) == 0 {
			s = newStepper(batch.New(batch.Config{}))
		}
		if _, err := s.step(recs[i%len(recs)]); err != nil {
			b.Fatal(err)
		}
	}
}
