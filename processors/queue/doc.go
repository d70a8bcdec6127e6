// Package queue is the seam between those who hand out tasks and those who work them off: tasks of a named queue,
// delivered at least once, acknowledged one by one, counted per delivery.
//
// # Contract
//
//	Receive   takes up to max tasks and makes their deliveries durable before it returns them: a process that dies
//	          afterwards has used up one delivery of each
//	Done      the task's outcome is durable elsewhere, or the task was enqueued again: it is never delivered again
//	          (within what the driver remembers)
//	Release   the attempt was interrupted, not its fault: the delivery does not count
//	Context   of a delivery ends when the task belongs to somebody else
//
// A task that was delivered before without an end is a suspect: it may be what killed its process. Suspects are handed
// out alone, so that only their own crash counts against them. Beyond MaxDeliveries a task comes back as Buried: the
// receiver reports it lost and calls Done.
//
// # Kafka
//
// One topic per queue, one consumer group. The committed offset is the lowest one that is not done; the commit metadata
// holds what is done above it and how often the others were delivered:
//
//	metadata := base64( version 0x01, topic id [16], segment... )
//	segment  := uvarint gap since the last segment, uvarint length, uvarint kind   0 = done, n = delivered n times
//
// At most 2 KiB; a partition whose metadata is full hands out nothing until a task at its head ends. Metadata of another
// incarnation of the topic is ignored.
//
// Share groups are no second driver, with the reasons in docs/adr/0020.
//
// Retries wait in tiers, one topic per delay, so that each stays in due order; whoever consumes a queue moves what is
// due back.
package queue
