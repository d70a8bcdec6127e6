package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/quiesce/quiesce/processors"
	"github.com/quiesce/quiesce/processors/batch"
	"github.com/quiesce/quiesce/processors/stats"
)

// MachineRoles are the roles that keep a table: each is a machine that runs as a goka group.
func MachineRoles() []string { return []string{RoleController, RoleWorkflow, RoleStats, RoleNotifier} }

// Machine makes the machine of a role, as a node of this configuration runs it.
func (c Config) Machine(role string) (processors.Machine, error) {
	switch role {
	case RoleController:
		return batch.New(batch.Config{}), nil
	case RoleWorkflow:
		return c.Jobs.machine()
	case RoleStats:
		return stats.New(), nil
	case RoleNotifier:
		return c.Notify.machine()
	}
	return nil, fmt.Errorf("role %q: one of %s", role, strings.Join(MachineRoles(), ", "))
}

// startMachine runs the machine of a role.
func (n *Node) startMachine(ctx context.Context, role string) error {
	m, err := n.cfg.Machine(role)
	if err != nil {
		return err
	}
	p, err := processors.New(processors.Config{
		Bootstrap: n.cfg.Bootstrap, Prefix: n.cfg.Prefix, Machine: m, DataDir: n.cfg.DataDir, InstanceID: n.cfg.InstanceID,
		Logger: n.cfg.Log, Registerer: n.registry, Security: n.cfg.Security,
	})
	if err != nil {
		return err
	}
	n.run(role, func() error { return p.Run(ctx) })
	return nil
}
