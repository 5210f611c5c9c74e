package launch

import (
	"fmt"
	"os/exec"
	"strings"
)

// Starter is a program that starts processes together.
type Starter struct {
	Path   string
	Family string // "Open MPI" or "MPICH"
}

// Find takes the first launcher there is: name when it is given, else those of the usual names.
func Find(name string) (Starter, error) {
	names := []string{"mpiexec", "mpirun", "mpirun.openmpi", "mpiexec.mpich", "mpiexec.hydra"}
	if name != "" {
		names = []string{name}
	}
	var refused []string
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			refused = append(refused, n+": not found")
			continue
		}
		about, err := exec.Command(path, "--version").CombinedOutput()
		if f := family(string(about)); f != "" {
			return Starter{path, f}, nil
		}
		refused = append(refused, fmt.Sprintf("%s: neither Open MPI nor of the MPICH family (%v)", path, err))
	}
	return Starter{}, fmt.Errorf("no launcher: %s; install openmpi-bin or mpich", strings.Join(refused, "; "))
}

// family tells a launcher by what it says of itself.
func family(about string) string {
	switch {
	case strings.Contains(about, "Open MPI"), strings.Contains(about, "OpenRTE"), strings.Contains(about, "PRTE"):
		return "Open MPI"
	case strings.Contains(about, "HYDRA"), strings.Contains(about, "Intel(R) MPI"):
		return "MPICH"
	}
	return ""
}

// Args are the arguments that start n processes of a command. more processes than cores are let share; root is let run.
func (s Starter) Args(n int, hostFile string, crowded, root bool, command []string) []string {
	var args []string
	if s.Family == "Open MPI" {
		// Where a host has one or two processes it would bind each to one core, which its MPI thread and its computation then share. And hydra passes
		// all variables on, this one is told to.
		args = append(args, "--bind-to", "none", "-x", Variable)
		if root {
			args = append(args, "--allow-run-as-root")
		}
		if crowded && hostFile == "" {
			args = append(args, "--oversubscribe")
		}
	}
	if hostFile != "" {
		args = append(args, map[string]string{"Open MPI": "--hostfile", "MPICH": "-f"}[s.Family], hostFile)
	}
	return append(append(args, "-n", fmt.Sprint(n)), command...)
}
