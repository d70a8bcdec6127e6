// Package tail reads topics of a deployment from outside, as a demo or a test does: what is there now (Read), and what
// comes (Follow). No group is joined and nothing is committed.
package tail
