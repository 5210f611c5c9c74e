package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
			job := launch.Job{Starter: s, Ranks: n, HostFile: hosts, Command: command, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
			return repeated(cmd, job, args, restarts)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().IntVarP(&n, "ranks", "n", 0, "processes, one a rank")
	cmd.Flags().IntVar(&restarts, "restarts", 0, "how often the processes are started again when they fail, with --resume latest; give train an --out")
	cmd.Flags().StringVar(&hosts, "hosts", "", "host file, in the launcher's own format; after a failure only its hosts that answer are used")
	cmd.Flags().StringVar(&name, "mpiexec", "", "the launcher: a name or path (default the first of mpiexec, mpirun, mpirun.openmpi, mpiexec.mpich, mpiexec.hydra)")
	return cmd
}

// repeated runs a job, and again where it fails and may be started again.
func repeated(cmd *cobra.Command, whole launch.Job, args []string, restarts int) error {
	dir, err := os.MkdirTemp("", "triax-launch-")
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer os.RemoveAll(dir)
	job := whole
	for again := 0; ; again++ {
		err := job.Run(cmd.Context())
		var ended *launch.Ended
		if !errors.As(err, &ended) {
			return err
		}
		if again == restarts || ended.Code == exitRequest || ended.Code == exitStopped || cmd.Context().Err() != nil {
			return launchError{ended, again}
		}
		fmt.Fprintf(whole.Err, "triax launch: %v\n", ended)
		if !slices.Contains(whole.Command, "--resume") {
			whole.Command = append(whole.Command, "--resume", "latest")
		}
		if job, err = remaining(cmd.Context(), whole, args, filepath.Join(dir, "hosts")); err != nil {
			return err
		}
		fmt.Fprintf(whole.Err, "triax launch: restart %d of %d, of %d processes, goes on from the newest checkpoint\n", again+1, restarts, job.Ranks)
	}
}

// remaining is a job without the hosts that do not answer, and without the ranks that have no room then.
func remaining(ctx context.Context, job launch.Job, args []string, file string) (launch.Job, error) {
	if job.HostFile == "" {
		return job, nil
	}
	all, err := launch.ReadHosts(job.HostFile)
	if err != nil {
		return job, err
	}
	there := job.Starter.Reachable(ctx, all)
	for _, h := range all {
		if !slices.Contains(there, h) {
			fmt.Fprintf(job.Err, "triax launch: host %s does not answer, and is left out\n", h.Name)
		}
	}
	if len(there) == len(all) {
		return job, nil
	}
	job.HostFile = file
	if job.Ranks, err = fewer(args, job.Ranks, room(there)); err != nil {
		return job, err
	}
	return job, job.Starter.WriteHosts(file, there)
}

// launchError is how the processes ended; what they said has been shown.
type launchError struct {
	ended    *launch.Ended
	restarts int
}

func (e launchError) Error() string {
	return fmt.Sprintf("%v (after %d restarts)", e.ended, e.restarts)
}
