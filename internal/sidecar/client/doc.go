// Package client calls a sidecar: typed calls, read-your-writes, and errors that say with which status a program should
// exit.
//
// A Client remembers the position of its last write per batch and asks at least for it in every later read, so that what
// it wrote is what it sees. It is safe for concurrent use.
package client
