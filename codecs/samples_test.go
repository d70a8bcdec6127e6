package codecs

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// samples returns one event of every type with every field set, and some of special shape.
func samples() []Event {
	var evs []Event
	for _, name := range TypeNames() {
		m, err := NewData(name)
		if err != nil {
			panic(err)
		}
		fillMessage(m.ProtoReflect())
		evs = append(evs, Event{Type: name, ID: "quiesce.controller/00ff/3/41/0", Data: m})
	}
	return append(evs, Event{Type: TypeBatchReport, Data: itemsReport()})
}

// itemsReport is a report as stages and workers send them.
func itemsReport() *BatchReport {
	return &BatchReport{Run: "01J9", Round: 2, Reporter: "worker-3", Feeder: 1, Items: []*ReportItem{
		NewItem(0, 0, OK),
		NewItem(7, 65_540, OK),
		{Bitmap: bitmapOf(1, 5, 70_000, 70_001, 70_002), Outcome: Failed, Reason: "no such file: \"naïve\"", Attempt: 3, Leg: 1},
		NewItem(4294967294, 4294967294, Skipped),
		NewItem(9, 9, Outcome_unspecified),
	}}
}

func bitmapOf(xs ...uint32) []byte {
	m := roaring.BitmapOf(xs...)
	m.RunOptimize()
	b, err := m.ToBytes()
	if err != nil {
		panic(err)
	}
	return b
}

// fillMessage sets every field to a value that depends on its number only.
func fillMessage(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			for _, k := range []string{"alpha", "beta"} {
				m.Mutable(f).Map().Set(protoreflect.ValueOfString(k).MapKey(), scalar(f.MapValue()))
			}
		case f.IsList():
			for range 2 {
				if f.Kind() == protoreflect.MessageKind {
					fillMessage(m.Mutable(f).List().AppendMutable().Message())
				} else {
					m.Mutable(f).List().Append(scalar(f))
				}
			}
		case f.Kind() == protoreflect.MessageKind:
			fillMessage(m.Mutable(f).Message())
		default:
			m.Set(f, scalar(f))
		}
	}
}

func scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	n := int(f.Number())
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprintf("%s-%d", f.Name(), n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{byte(n), 0, 0xff})
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(2)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(4_000_000_000 + n))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(-n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1<<63 + uint64(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1_764_547_200_000 + int64(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n) + 0.25)
	}
	panic("no sample for a field of kind " + f.Kind().String())
}
