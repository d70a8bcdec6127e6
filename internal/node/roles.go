package node

import (
	"context"
	"slices"
)

// Roles that a node can have.
const (
	RoleController = "controller" // aggregates batches
	RoleWorkflow   = "workflow"   // runs jobs
	RoleDispatcher = "dispatcher" // copies released tasks into their queues
	RoleStats      = "stats"      // counts what the events tell
	RoleNotifier   = "notifier"   // matches events to subscriptions, and delivers
	RoleSidecar    = "sidecar"    // HTTP
)

// Roles returns all of them.
func Roles() []string {
	return []string{RoleController, RoleWorkflow, RoleDispatcher, RoleStats, RoleNotifier, RoleSidecar}
}

type starter struct {
	role  string
	start func(context.Context) error
}

// starters start the roles, in the order in which they are started.
func (n *Node) starters() []starter {
	machine := func(role string) starter {
		return starter{role, func(ctx context.Context) error { return n.startMachine(ctx, role) }}
	}
	all := []starter{machine(RoleController), machine(RoleWorkflow), {RoleDispatcher, n.startDispatcher}, machine(RoleStats),
		{RoleNotifier, n.startNotifier}, {RoleSidecar, n.startSidecar}}
	return slices.DeleteFunc(all, func(s starter) bool { return !slices.Contains(n.cfg.Roles, s.role) })
}
