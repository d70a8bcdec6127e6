// Package api is the vocabulary of the HTTP interface: the bodies that the sidecar writes and its clients read.
//
// Indexes and counts are JSON numbers; positions, times (ms since the epoch) and versions are strings, because they have
// 64 bits. Int64 reads both forms. Absent and zero are the same thing except where a field says otherwise.
//
// Request bodies are the events of package codecs in JSON: POST /v1/batches takes batch.start plus "id", a verb takes
// its arguments, reports take batch.report.
package api
