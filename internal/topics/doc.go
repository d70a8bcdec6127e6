// Package topics makes the topics of a deployment be as they have to be, and never alters one that exists: what differs
// is reported, with the command that would change it.
//
//	Plan    what is missing, what differs                     reads only
//	Apply   creates what is missing, waits until it is usable, then verifies
//	Verify  one error that names everything that breaks a guarantee
//
// # Differences
//
// A difference is harmful when a guarantee depends on the setting: partition count, cleanup policy, append times,
// unclean elections, and numbers below the bound that the rules between settings give them. Other differences
// (a longer retention, another segment size) are an operator's right: they are shown by Plan and pass Verify.
//
// # Starting together
//
// Any number of instances may call Apply at the same moment. One of them creates a topic, for the others "exists
// already" is as good; each then waits for leaders by itself.
package topics
