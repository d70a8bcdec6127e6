package apache

import "syscall"

// childAttributes: a process group of its own, so that an interrupt at the terminal reaches the tests first; and killed
// when its parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
