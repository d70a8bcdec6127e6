// Package broker is the embedded Kafka broker of `quiesce dev`, `quiesce demo` and the tests: one process, no
// installation, any Kafka client can connect. It wraps kfake, the in-process broker of franz-go.
//
//	client --produce--> [append-time stamp] --> kfake log --> memory, or the data directory
//
// # Contract
//
// Start listens and creates the configured topics before it returns, so that a client can use them at once. Close is
// the only way to stop; it waits for state to be on disk. One data directory belongs to one broker at a time (a lock
// file says so); state survives Close and also a killed process, as far as the operating system kept the pages.
//
// # Append time
//
// Records of topics with message.timestamp.type=LogAppendTime get the time of their arrival, whatever their producer
// wrote, because the machines take time from there. kfake stores the setting but does not act on it, so a hook
// rewrites each batch before kfake sees it: base and maximum timestamp become now, every record's delta becomes 0, the
// checksum is computed anew. Batches stay compressed as they were; sequence numbers, transactions and offsets are not
// touched. Batches with a wrong checksum pass unchanged and are refused by kfake.
//
// # Non-obvious
//
//   - The batch attribute "log append time" is not set: kfake would overwrite the times after the checksum was
//     computed. A consumer therefore sees timestamp type CreateTime, with the append time in it, and the produce
//     answer carries no append time.
//   - A batch has one base time and a delta per record. Stamping the batch header alone would leave the distance
//     between the first record and the others: a batch of 1970 and 2100 would read as now and now + 130 years.
//   - DescribeTopicPartitions is not offered: kfake's answer makes the Java admin client fail. It uses Metadata then.
//   - Settings about compaction lag, dirty ratio and unclean election are stored, not obeyed; compaction runs only when
//     asked for; records without a key are accepted on compacted topics. What depends on these is tested on Apache
//     Kafka (see the apache package).
package broker
