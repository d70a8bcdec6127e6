package codecs_test

import (
	"fmt"
	"os"

	"github.com/quiesce/quiesce/codecs"
)

// A service reports that tasks 0 to 99 of a batch went well and task 100 did not.
func ExampleEncode() {
	failed := codecs.NewItem(100, 100, codecs.Failed)
	failed.Reason = "no such customer"
	rec, err := codecs.Encode("quiesce.control", "nightly-4711", codecs.Source("quiesce", "billing"), &codecs.Event{
		Type: codecs.TypeBatchReport, ID: "billing-0/000017",
		Data: &codecs.BatchReport{Run: "01J9ZK3V", Items: []*codecs.ReportItem{codecs.NewItem(0, 99, codecs.OK), failed}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range rec.Headers {
		fmt.Printf("%s: %s\n", h.Key, h.Value)
	}
	fmt.Println(len(rec.Value), "bytes to partition", codecs.Partition(rec.Key, 12), "of 12")
	// Output:
	// ce_specversion: 1.0
	// ce_id: billing-0/000017
	// ce_source: /quiesce/quiesce/billing
	// ce_type: quiesce.batch.report.v1
	// ce_subject: nightly-4711
	// content-type: application/protobuf
	// 40 bytes to partition 10 of 12
}

// The same event as any language can write it: JSON, and one header that matters.
func ExampleDecode() {
	rec := codecs.Record{
		Key:     []byte("nightly-4711"),
		Headers: []codecs.Header{{Key: codecs.HeaderType, Value: []byte("quiesce.batch.report.v1")}},
		Value:   []byte(`{"run":"01J9ZK3V","items":[{"first":7,"outcome":"ok"}]}`),
	}
	var ev codecs.Event
	if err := codecs.Decode(&rec, &ev); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(&ev)
	// Output: batch.report nightly-4711 {"run":"01J9ZK3V","items":[{"first":7,"outcome":"ok"}]}
}

// A wrong field is named as a JSON pointer.
func ExampleValidate() {
	last := uint32(3)
	ev := codecs.Event{Type: codecs.TypeBatchReport, Key: "nightly-4711", Data: &codecs.BatchReport{
		Items: []*codecs.ReportItem{{First: 7, Last: &last}},
	}}
	fmt.Println(codecs.Validate(&ev))
	// Output: /run: missing; /items/0/last: smaller than first
}

// Outcomes are merged before they are sent. The first one of a task stands.
func ExampleCoalescer() {
	var c codecs.Coalescer
	for _, index := range []uint32{4, 2, 3, 9, 3} {
		if err := c.Add(codecs.NewItem(index, index, codecs.OK)); err != nil {
			fmt.Println(err)
			return
		}
	}
	items, err := c.Items()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range items {
		_ = codecs.ForEachRange(it, func(first, last uint32) { fmt.Println(first, "to", last, it.Outcome) })
	}
	// Output:
	// 2 to 4 ok
	// 9 to 9 ok
}

// A service passes on what the headers of its input say.
func ExampleParseTag() {
	input := []codecs.Header{
		{Key: "quiesce-batch", Value: []byte("nightly-4711")}, {Key: "quiesce-run", Value: []byte("01J9ZK3V")},
		{Key: "quiesce-index", Value: []byte("41")},
	}
	tag, ok, err := codecs.ParseTag(input)
	fmt.Println(ok, err, tag.Batch, tag.Index, tag.Round)
	for _, h := range codecs.AppendTag(nil, &tag) {
		fmt.Printf("%s: %s\n", h.Key, h.Value)
	}
	// Output:
	// true <nil> nightly-4711 41 1
	// quiesce-batch: nightly-4711
	// quiesce-run: 01J9ZK3V
	// quiesce-index: 41
}

func ExampleNewRecordWriter() {
	w, err := codecs.NewRecordWriter(os.Stdout, codecs.RecordedTopic{Topic: "quiesce.control", Partitions: 12})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Write(&codecs.Record{Partition: 3, Offset: 17, Time: 1764547200000, Key: []byte("b"), Value: []byte("{}")}); err != nil {
		fmt.Println(err)
	}
	if err := w.Flush(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"quiesce_record":1,"topic":"quiesce.control","topic_id":"00000000000000000000000000000000","partitions":12}
	// {"p":3,"o":"17","t":"1764547200000","k":"Yg==","h":[],"v":"e30="}
}
