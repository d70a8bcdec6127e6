//go:build unix && !linux

package apache

import "syscall"

// childAttributes: a process group of its own, so that an interrupt at the terminal reaches the tests first.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
