// Package apache runs Apache Kafka itself for tests: one combined broker and controller (KRaft), or three, each a Java
// process on 127.0.0.1 that a test may kill, pause and restart.
//
//	Find -----> Install   KAFKA_HOME, or the cache below the user's cache directory, filled once by Maven
//	Start ----> Cluster   format, start, wait until every node answers; Close kills and removes everything
//	Run ------> exit code a command beside a cluster, its address in QUIESCE_TEST_BOOTSTRAP (`make test-kafka`)
//
// # Non-obvious
//
//   - A node counts as ready when it answers a metadata request itself and names the nodes that run. Its log is not read.
//   - After Kill the node is let in again only when its old registration has expired. Clusters use a broker session of
//     3 s instead of 9 s; Restart after Kill waits for it.
//   - The Java processes die with the process that started them (Linux), so that an aborted test run leaves none.
//   - min.insync.replicas becomes a dynamic setting at format time: a changed setting has no effect on a formatted node.
//
// The package is for unix.
package apache
