package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"triax/checkpoint"
	"triax/comm/mpi"
	"triax/comm/nccl"
	"triax/configs"
	"triax/launch"
	"triax/train"
)

// ranks is what --ranks says a rank is.
type ranks struct {
	kind  string
	place launch.Place
	world world        // nil where ranks are goroutines
	gpus  *nccl.World  // the same, where ranks are NVIDIA's devices that talk to one another
	hub   *nccl.Hub    // on its rank 0
	line  *launch.Line // to the triax launch that started this process, if one did
}

// world is a process's place among those that were started together.
type world interface {
	train.World
	Agree(ctx context.Context, text string) (string, error)
	Close() error
}

const (
	goroutines = "goroutines"
	processes  = "mpi"
	devices    = "nccl"
)

func (r *ranks) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.kind, "ranks", goroutines, "what a rank is: goroutines of this process, or mpi: this process, one of those that mpirun, mpiexec or srun started, or nccl: the same, each with an NVIDIA device of its own; torchrun may start those")
}

// open finds who started this process, and where ranks are processes joins the others. What contradicts is refused: a launcher's processes
// never train alone, side by side.
func (r *ranks) open(ctx context.Context, note io.Writer) error {
	var err error
	if r.place, err = launch.Detect(os.Getenv); err != nil {
		return requestError{err}
	}
	refuse := func(rule, hint string) error {
		return configs.Problems{{Field: "--ranks", Value: r.kind, Rule: rule, Hint: hint}}
	}
	p := r.place
	switch {
	case r.kind == goroutines && p.Rule != launch.None && p.Size != 1:
		return refuse(fmt.Sprintf("this process is one of several (%s), and each would train alone", p), "use --ranks mpi, or start one process")
	case r.kind == goroutines:
		return nil
	case r.kind == devices:
		return r.meet(ctx, note)
	case r.kind != processes:
		return refuse("want goroutines, mpi or nccl", "use mpi under mpirun, mpiexec or srun, and nccl where each process has an NVIDIA device")
	case p.Rule == launch.None:
		return refuse("no launcher started this process, so it would be alone", "use triax launch -n 8 train ..., or mpirun, mpiexec or srun")
	case !p.MPI:
		return refuse(fmt.Sprintf("%s, which gives MPI nothing to form a world with", p), "use mpirun, mpiexec or srun")
	}
	r.line = launch.Call(ctx, p.Rank)
	w, err := mpi.Open(p.Family, p.LocalSize)
	if err != nil {
		return fmt.Errorf("--ranks mpi, %s: %w", p, err)
	}
	r.world = w
	if n := w.Size(); p.Size > 0 && n != p.Size {
		return refuse(fmt.Sprintf("%s, and %s makes a world of %d", p, w.Library(), n), "name the library that belongs to the launcher with TRIAX_LIBMPI, or use that library's mpiexec")
	}
	if r.first() {
		fmt.Fprintf(note, "%s; %s\n", p, w.Library())
		if p.Bound && runtime.NumCPU() == 1 {
			fmt.Fprintln(note, "warning: the launcher binds each process to one core, which computation and communication then share; mpirun --bind-to none lets them use all")
		}
	}
	return nil
}

// first tells whether this process speaks for all.
func (r *ranks) first() bool { return r.world == nil || r.world.Rank() == 0 }

// fitted is the configuration for as many processes as there are, where train.elastic allows another degree of data parallelism.
func (r *ranks) fitted(cfg *configs.Config, note io.Writer, load func(extra ...string) (*configs.Config, error)) (*configs.Config, error) {
	if r.world == nil || !cfg.Train.Elastic || r.world.Size() == cfg.Mesh.World() {
		return cfg, nil
	}
	others := cfg.Mesh.World() / cfg.Mesh.DP
	n := r.world.Size() / others
	if n < 1 || r.world.Size()%others != 0 {
		return nil, configs.Problems{{
			Field: "train.elastic", Value: "true", Rule: fmt.Sprintf("%d processes are no multiple of the %d ranks of a replica", r.world.Size(), others),
			Hint: fmt.Sprintf("start %d or %d", max(1, n)*others, (n+1)*others),
		}}
	}
	if r.first() {
		fmt.Fprintf(note, "train.elastic: mesh.dp is %d, for %d processes\n", n, r.world.Size())
	}
	return load(fmt.Sprintf("mesh.dp=%d", n))
}

// agree makes the run's folder and checkpoint those of rank 0 on all ranks.
func (r *ranks) agree(ctx context.Context, folder string, c *checkpoint.Checkpoint) (string, *checkpoint.Checkpoint, error) {
	if r.world == nil {
		return folder, c, nil
	}
	var said struct{ Folder, Resume string }
	said.Folder = folder
	if c != nil {
		said.Resume = c.Dir
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return "", nil, err
	}
	text, err := r.world.Agree(ctx, string(raw))
	if err != nil || r.first() {
		return folder, c, err
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return "", nil, fmt.Errorf("rank 0 says %q: %w", text, err)
	}
	if said.Resume != "" {
		c, err = checkpoint.Open(said.Resume)
	}
	return said.Folder, c, err
}

// failed is how a process among others ends badly: it tells them, where it was not told itself, and gives them time to say what they saw, since
// the launcher ends all when the first one ends.
func (r *ranks) failed(err error) error {
	if r.world == nil || err == nil {
		return err
	}
	if !train.Remote(err) && !errors.As(err, new(*mpi.RemoteError)) && !errors.As(err, new(*nccl.RemoteError)) {
		r.world.Stop(err)
	}
	if errors.As(err, new(configs.Problems)) && !r.first() {
		err = silentError{err}
	} else {
		fmt.Fprintf(os.Stderr, "triax: %v\n", err)
		err = silentError{err}
	}
	time.Sleep(goodbye)
	r.line.Close()
	return err
}

// goodbye is how long a failing process waits for the others to end too.
const goodbye = 1500 * time.Millisecond

// silentError has been told already, here or by another process.
type silentError struct{ error }

func (e silentError) Unwrap() error { return e.error }
