// Package queuetest is the conformance suite of the queue seam: every driver passes it.
package queuetest
