package codecs

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"google.golang.org/protobuf/proto"
)

// Bounds of a sketch.
const (
	SketchAccuracy = 0.01 // relative error of a quantile
	sketchBins     = 1024 // per sketch, 8 bytes each: 9 orders of magnitude; below that the lowest ones become one
	maxSketchValue = 1e13 // ms: 300 years
	maxSketchCount = 1e15
)

// Sketch is a mergeable quantile sketch of durations in ms (DDSketch by Masson, Rim and Lee, VLDB 2019): the bytes in
// Timing. Merging gives the same sketch in any order.
type Sketch struct{ d *ddsketch.DDSketch }

// NewSketch returns an empty sketch.
func NewSketch() *Sketch {
	m, err := mapping.NewLogarithmicMapping(SketchAccuracy)
	if err != nil {
		panic(err) // the accuracy is a constant between 0 and 1
	}
	return &Sketch{ddsketch.NewDDSketch(m, store.NewCollapsingLowestDenseStore(sketchBins), store.NewDenseStore())}
}

// Add counts one duration; a negative one (clocks differ) counts as 0.
func (s *Sketch) Add(ms float64) { s.add(bin{ms, 1}) }

func (s *Sketch) add(b bin) {
	if b.value < 1e-3 || math.IsNaN(b.value) {
		b.value = 0
	}
	// The value is in range and the count positive: there is no error left.
	_ = s.d.AddWithCount(min(b.value, maxSketchValue), b.count)
}

type bin struct{ value, count float64 }

// Merge adds what AppendBinary, or any DDSketch library, wrote. Another mapping costs accuracy. An error changes
// nothing, and no input makes it allocate more than the input has.
func (s *Sketch) Merge(b []byte) error {
	bins, err := readBins(b)
	if err != nil {
		return fmt.Errorf("sketch: %w", err)
	}
	for _, b := range bins {
		s.add(b)
	}
	return nil
}

// readBins reads the bins of a DDSketch message in ascending order.
func readBins(b []byte) ([]bin, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var pb sketchpb.DDSketch
	if err := proto.Unmarshal(b, &pb); err != nil {
		return nil, err
	}
	m, err := mapping.FromProto(pb.Mapping)
	if err != nil {
		return nil, err
	}
	bins := make([]bin, 0, len(pb.PositiveValues.GetContiguousBinCounts())+len(pb.PositiveValues.GetBinCounts())+1)
	bins = append(bins, bin{0, pb.ZeroCount})
	for i, n := range pb.PositiveValues.GetContiguousBinCounts() {
		if n != 0 {
			bins = append(bins, bin{m.Value(int(pb.PositiveValues.ContiguousBinIndexOffset) + i), n})
		}
	}
	for i, n := range pb.PositiveValues.GetBinCounts() {
		bins = append(bins, bin{m.Value(int(i)), n})
	}
	for _, n := range pb.NegativeValues.GetContiguousBinCounts() {
		bins[0].count += n
	}
	for _, n := range pb.NegativeValues.GetBinCounts() {
		bins[0].count += n
	}
	for _, b := range bins {
		if !(b.value >= 0 && b.value <= 2*maxSketchValue) || !(b.count >= 0 && b.count <= maxSketchCount) {
			return nil, fmt.Errorf("%w: bin of %g with %g values", ErrData, b.value, b.count)
		}
	}
	slices.SortFunc(bins, func(a, b bin) int { return cmp.Compare(a.value, b.value) })
	return slices.DeleteFunc(bins, func(b bin) bool { return b.count == 0 }), nil
}

// AppendBinary appends the DDSketch message; nothing when the sketch is empty.
func (s *Sketch) AppendBinary(b []byte) ([]byte, error) {
	if s == nil || s.d.IsEmpty() {
		return b, nil
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, s.d.ToProto())
}

// Count is the number of values.
func (s *Sketch) Count() uint64 {
	if s == nil {
		return 0
	}
	return uint64(math.Round(s.d.GetCount()))
}

// Sum is the sum of the values in ms, within SketchAccuracy.
func (s *Sketch) Sum() float64 {
	if s == nil {
		return 0
	}
	return s.d.GetSum()
}

// Quantile returns the value at q (0 to 1) in ms, within SketchAccuracy; 0 when the sketch is empty.
func (s *Sketch) Quantile(q float64) float64 {
	if s.Count() == 0 {
		return 0
	}
	v, err := s.d.GetValueAtQuantile(q)
	if err != nil {
		return 0
	}
	return v
}

// MergeWith adds all values of another sketch, which may be nil.
func (s *Sketch) MergeWith(o *Sketch) {
	if o != nil {
		_ = s.d.MergeWith(o.d) // fails for another mapping only, and there is one
	}
}
