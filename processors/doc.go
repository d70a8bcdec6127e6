// Package processors is the runtime: it runs pure machines as goka processor groups with guarantees that goka alone
// does not give. A decision is durable before anyone can see it, seen before its input is committed, and never taken
// twice.
package processors
