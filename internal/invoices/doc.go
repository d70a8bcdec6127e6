// Package invoices is the demo of jobs: a file of orders becomes one PDF invoice for each customer, mailed, and a report for
// the account manager. Everything is checked against a plain loop over the same file.
//
//	orders.csv -> s1 prepare -> customers.jsonl
//	                 s2 split -> one sub-job a customer -> render: PDF, mail, receipt
//	                                  s3 report -> report.md, invoices.csv, failures.csv
//
// The job type is invoices.yaml; each of its four queues has a Handler or a Splitter here, which Service runs as a process
// of its own and Run in the process of the command. Workers share a folder (Folder), one below it for each job.
//
// # At least once
//
// A sub-job may run again: its worker died, or its outcome did not arrive. So what it leaves can be made twice without a
// difference: the PDF of a customer has one name and the same bytes, and is written aside and renamed. A receipt is
// written when the mail was taken by the server; a sub-job that finds it does nothing. A worker that is killed between the
// two sends the mail again: no order of the two steps avoids that, so both mails carry the same Message-ID, by which a
// receiver can drop the second.
//
// # Broken customers
//
// A customer without a mail address, with a negative amount, with a date that is none, ... has no invoice: its sub-job fails
// with the reason, without another attempt, and the report lists it. A row that names no customer is rejected by s1, and
// listed, too.
//
// # Non-obvious
//
//   - The outcome of a sub-job has no place for its customer, so the reason begins with it.
//   - Files are not synced: they survive the death of a process, not that of the machine.
//   - The standard fonts of PDF know the characters of Windows-1252; others are printed as a dot.
package invoices
