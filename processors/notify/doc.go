// Package notify matches events to subscriptions. It is a pure machine for the group notifier: for each match it asks
// for one delivery, a task of kind "delivery" in the internal queue work.notify, which has the retries, the tiers and the
// dead letter of every queue. So a dead endpoint blocks nobody. Package internal/notify delivers.
//
//	events --> Step --> work.notify --> worker --> webhook, mail, command
//
// Subscriptions come from the configuration (Config), and up to four from the event itself: those that its batch or job
// was started with. A subscription names events by a glob (batch.*, step.completed) and may ask for labels and a job type.
//
// # Ids
//
// A task's id is made of the event's id and the destination (URL, template, secret): the same at every replay, and one
// destination is told once about an event, however many subscriptions say so. The payload of the task is a Delivery, as
// JSON.
//
// # Non-obvious
//
//   - The row of a partition only counts. It is there for the outbox: a delivery that was decided is sent, also if the
//     process dies.
//   - The machine is Local: the runtime takes every event where it is, in rows keyed by partition.
//   - Commands (exec:) are for subscriptions of the configuration. An event cannot ask for one.
//   - An event whose data takes more than 16 KiB goes without them, marked as cut.
package notify
