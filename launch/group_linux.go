package launch

import (
	"os"
	"os/exec"
	"syscall"
)

// apart gives a command a process group of its own, so that all of it can be ended together, and ends it with this process.
func apart(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// killGroup ends a command and all that is left of its group.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
