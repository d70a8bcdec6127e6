// Package sidecartest is a deployment in memory: a control log, a small stand-in for the controller, its table, and an
// event topic, behind the sidecar's own interfaces; beside it the real machines of jobs and of statistics. Tests of the HTTP
// side, the client and the page run against it without a broker; Hold and Recover show what only a slow or starting role
// does.
package sidecartest
