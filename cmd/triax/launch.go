package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"triax/launch"
)

func launchCmd() *cobra.Command {
	var n, restarts int
	var hosts, name string
	cmd := &cobra.Command{
		Use:   "launch -n RANKS [flags] train CONFIG.toml [train's flags]",
		Short: "Start processes of a command under the mpiexec there is, one a rank, and again where they fail",
		Example: `  triax launch -n 8 train configs/tiny.toml --dp 2 --pp 2 --tp 2
  triax launch -n 16 --hosts hosts --restarts 3 train job.toml --out runs/job`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || n < 1 {
				return requestError{fmt.Errorf("launch: want -n RANKS and a command, for example triax launch -n 8 train CONFIG.toml")}
			}
			s, err := launch.Find(name)
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			command := append([]string{self}, args...)
			if !slices.Contains(command, "--ranks") {
				command = append(command, "--ranks", "mpi")
			}
			for again := 0; ; again++ {
				c := exec.CommandContext(cmd.Context(), s.Path, s.Args(n, hosts, n > runtime.NumCPU(), os.Geteuid() == 0, command)...)
				c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // the launcher ends its processes
				c.Stdin, c.Stdout = os.Stdin, cmd.OutOrStdout()
				heard := &failures{to: cmd.ErrOrStderr(), act: func() { time.AfterFunc(lateness, func() { end(c.Process) }) }}
				c.Stderr, c.WaitDelay = heard, time.Second
				err := c.Run()
				var ended *exec.ExitError
				if err == nil || !errors.As(err, &ended) {
					return err
				}
				code := ended.ExitCode()
				if again == restarts || code == exitRequest || code == exitStopped || cmd.Context().Err() != nil {
					return launchError{code, again}
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "triax launch: ended with code %d; restart %d of %d goes on from the newest checkpoint\n", code, again+1, restarts)
				if !slices.Contains(command, "--resume") {
					command = append(command, "--resume", "latest")
				}
			}
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().IntVarP(&n, "ranks", "n", 0, "processes, one a rank")
	cmd.Flags().IntVar(&restarts, "restarts", 0, "how often the processes are started again when they fail, with --resume latest; give train an --out")
	cmd.Flags().StringVar(&hosts, "hosts", "", "host file, in the launcher's own format")
	cmd.Flags().StringVar(&name, "mpiexec", "", "the launcher: a name or path (default the first of mpiexec, mpirun, mpirun.openmpi, mpiexec.mpich, mpiexec.hydra)")
	return cmd
}

// lateness is how long a launcher may take to end after a process has said that it failed. One that has lost a host waits for it for good.
const lateness = 10 * time.Second

// end asks a launcher to end, and then ends it.
func end(p *os.Process) {
	if p.Signal(os.Interrupt) == nil { // else it has ended
		time.AfterFunc(3*time.Second, func() { _ = p.Kill() })
	}
}

// failures passes on what processes write, and acts at the first line by which one of them says that it failed.
type failures struct {
	to  io.Writer
	act func()
	was bool
}

func (f *failures) Write(text []byte) (int, error) {
	if !f.was && (bytes.HasPrefix(text, []byte("triax: ")) || bytes.Contains(text, []byte("\ntriax: "))) {
		f.was = true
		f.act()
	}
	return f.to.Write(text)
}

// launchError is how the processes ended; what they said has been shown.
type launchError struct{ code, restarts int }

func (e launchError) Error() string {
	return fmt.Sprintf("the processes ended with code %d, after %d restarts", e.code, e.restarts)
}
