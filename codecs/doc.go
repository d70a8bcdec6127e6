// Package codecs is the vocabulary of Quiesce: the events and rows of every topic, their bytes, and the names and
// numbers that have to agree everywhere. It imports nothing of the module.
//
// # Records
//
// Every record is a CloudEvents 1.0 message in the Kafka binding's binary content mode: attributes in ce_ headers,
// data in the value, protobuf or JSON of the same schema by the content-type header (sniffed when it is absent).
//
//	ce_specversion 1.0
//	ce_id          machine outputs: <group>/<input topic id>/<partition>/<offset>/<index>; else any unique text
//	ce_source      /quiesce/<deployment>/<group or client id>
//	ce_type        quiesce.<name>.v1
//	ce_subject     batch or job id (the record key when absent)
//	content-type   application/protobuf | application/json
//	traceparent    W3C, passed through
//
// # Rows
//
// A table record's value is a fixed header (see RowHeader), the machine's row, and the row's outbox.
//
// # JSON
//
// The same schema: snake_case names, enums by lower-case name, uint32 as numbers, 64-bit numbers as strings (read also
// as numbers), bytes in base64, defaults left out. The same data always gives the same bytes. UnmarshalJSON and Validate
// name a wrong field as a JSON pointer.
//
// # Versions
//
// What version 1 wrote decodes for ever: testdata/golden/v1 is only added to. A higher version of a known event is
// ErrVersion. Unknown protobuf fields survive decoding and encoding; unknown JSON fields are left out, an unknown enum
// name is an error.
//
// # Non-obvious
//
//   - Decode never holds on to a record but for byte fields (bitmaps) of the data. The strings of one event share one
//     allocation; clone what outlives the event.
//   - batch.report has decoders and encoders by hand, because one id a record is the bulk of all traffic. They give up
//     on anything out of the ordinary and leave it to the protobuf library; a fuzz test holds them to its results.
//   - A set of indexes is read in place: what it claims is never allocated, and it is checked before the first range is
//     handed out. MaxReportChunks bounds the rows that one report can touch.
//   - A report with an overlong reason is accepted: a completion is worth more than its text. Machines clip it.
//   - An item without an outcome says that the task was started.
package codecs

//go:generate go run ./internal/schema/generate
