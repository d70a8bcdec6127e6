// Package processors is the runtime: it runs pure machines as goka processor groups with guarantees that goka alone
// does not give. A decision is durable before anyone can see it, seen before its input is committed, and never taken
// twice.
//
//	p, err := processors.New(processors.Config{Bootstrap: brokers, Machine: m})
//	err = p.Run(ctx) // until ctx ends; p.Ready() says whether all owned partitions run
//
// Topics exist before: <prefix>.<input>, <prefix>.<role>-table with as many partitions (and <prefix>.status for the
// controller), <prefix>.dead-letter, and what the machine writes to.
//
// # A cut
//
// One goroutine takes the inputs of a partition (handle), another one makes them durable (run). In between is the open
// cut: the decoded rows that changed and the outputs that were decided, with the offset that all of it belongs to.
//
//	inputs ..k --> rows and open cut --close--> rows to the changelog --acked--> local copy --> outputs, in input order
//	                                                                                              --acked--> k+1 committed
//
// A row record holds the row, the offset of the last input in it (Applied), and its outbox: the outputs that may not be
// acknowledged yet. An input at or below Applied changes nothing; exactly the outbox entries of its offset are sent
// again. A cut is closed at once when an observer waits for an output (Message.Due), else by age, stretched by bytes
// (Timing). Header rows are written before part rows, so a part is never ahead of its header.
//
// # Owners
//
// The owner of a partition first writes a claim record to its table partition; the offset of it is the number that all
// its records carry. A record behind a newer claim than its own is stale: readers ignore it (Judge). The owner is the only
// writer, so a gap between its acks means a stranger: it reads the gap, stops when there is a newer claim in it, and
// writes again what a stale record hides, before any output of the cut leaves. Recovery does the same for the whole log.
//
// The status topic is a second log of that kind: co-partitioned, its values are codecs.AppendRow(header, event bytes),
// it starts each ownership with a copy of the claim record and the current status of all open rows.
//
// # Reading a table or the status topic
//
// Keep a Judge per partition and ask it about every record in offset order, from any offset on (a reader that stores
// its offset stores Judge.Claim with it). Stale: ignore the record, the last one that was not stale stands, also if the
// stale one is null. Keys that start with 0x00 are not rows (codecs.IsReserved). Else ParseEnvelope (table) or
// codecs.ParseRow (status) gives the row. A null record deletes.
//
// # Position
//
// The position row says below which input offset rows and outputs are durable, and which machine-emitted inputs were
// seen last (marks). It is bound to the id of the input topic. Consumption starts there, whatever the group's committed
// offset says. Another topic id, or a log that ends below the position, is a refusal (ErrRefused); AdoptRecord lets an
// operator go on with the new topic.
//
// # Poison
//
// A record that does not decode, has no key, or breaks the decoder goes to the dead letter with its bytes, headers and
// codecs.HeaderDead*. One on the wrong partition is sent once to the right one (codecs.HeaderMoved); a Local machine
// takes it where it is. When the machine panics, or makes too large a row or output, the partition is rebuilt, and the
// row is quarantined at that offset: its records go to the dead letter until one comes for which Machine.Repairs is true.
// They are marked as parked (codecs.HeaderDeadParked); a repair sends them back (codecs.HeaderRepaired), past the marks of
// their sources.
//
// # Files
//
//	machine config rules processor ready      what runs, and how; the switches of the tests
//	group fetchers table gokaparts security client  goka, sarama and franz-go
//	part accept cache outbox envelope         one ownership: inputs to rows
//	cut flush gap status collect timers far   one ownership: rows to topics
//	recover survey adopt position claim store env  taking over
//
// # Non-obvious
//
//   - Messages go from sarama's claim to the machine; goka does the membership and owns the life of a table (Open =
//     take-over, Close = last cut). Config.ThroughGoka takes goka's loop.
//   - goka's marks are dropped; a cut marks once. Two marks of one partition can so never overtake each other.
//   - An outbox entry leaves the row by position (all cuts before are done), not by a flag: a row that was evicted and
//     read again has no flags.
//   - A zombie's outputs are harmless: its rows were durable, so they carry ids and bytes that the new owner repeats.
//   - min.compaction.lag.ms of the table must exceed the longest pause that a process may survive: only then the last
//     valid record of a key is still there when a stale one is found.
package processors
