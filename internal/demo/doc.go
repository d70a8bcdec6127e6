// Package demo is the main job on real input: every .go file of a folder goes through a DAG of services over Kafka, and
// the moment at which the last one is done is detected, timed, and checked against a plain loop.
//
//	               +-> parse  --decls---+
//	paths -> read -+                    +-> report (goka table, read through a view)
//	               +-> digest --digests-+
//
// One task is one file. Records carry the path, the size and the digest, never the contents. read, parse and digest are
// plain consumer groups; report is a goka processor group. All folds are idempotent (sets, not counters), so a record
// that is processed twice changes nothing.
package demo
