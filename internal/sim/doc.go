// Package sim runs a deployment in one process without brokers: logs in memory, one partition each, and everything else
// as it is in production: the machines, the dispatcher's releases, the in-memory driver of the queues, workers with their
// attempts, retries and shared reports. Time is Go's: in a testing/synctest bubble it is virtual, hours take
// milliseconds, and a run that stands still is found.
//
//	requests -> jobs -----> job machine -> control -> batch machine -> dispatch -> Releaser
//	             ^                 \                       ^                          |
//	             |                  +---> work.<queue> <---+--------------------------+
//	             +---- answers ---- workers ---- reports --+
//
// What it does not have: partitions, rebalances, owners that die, the write protocol of tables. Those are tested where
// they are.
package sim
