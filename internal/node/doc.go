// Package node runs roles of a deployment in one process: it makes the topics be as they have to be, then starts what
// it is asked to.
//
//	Start -> topics created and verified -> controller (goka group), sidecar (HTTP) -> Stop
//
// The caller owns the node: it calls Stop exactly when it wants the roles drained; Done tells it that one of them
// failed.
package node
