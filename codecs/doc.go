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
package codecs

//go:generate go run ./internal/schema/generate
