//go:build !linux

package launch

import (
	"os"
	"os/exec"
)

func apart(*exec.Cmd) {}

func killGroup(p *os.Process) error { return p.Kill() }
