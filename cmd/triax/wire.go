package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"triax/comm/nccl"
	"triax/configs"
	"triax/cuda"
	"triax/cuda/driver"
	library "triax/cuda/nccl"
	"triax/launch"
	"triax/train"
)

// meet brings this process to the others at the hub, which rank 0 starts. Its device comes later, when the configuration has been read.
func (r *ranks) meet(ctx context.Context, note io.Writer) error {
	refuse := func(rule, hint string) error {
		return configs.Problems{{Field: "--ranks", Value: r.kind, Rule: rule, Hint: hint}}
	}
	p := r.place
	address, err := hubAddress(os.Getenv)
	switch {
	case err != nil:
		return refuse(err.Error(), "set TRIAX_HUB=HOST:PORT, rank 0's host and a free port there, for all processes")
	case p.Rule == launch.None:
		return refuse("no launcher started this process, so its rank is not known", "use torchrun, mpirun or srun, or set TRIAX_RANK, TRIAX_WORLD_SIZE and TRIAX_LOCAL_RANK")
	case p.Size == 0:
		return refuse(fmt.Sprintf("%s, which does not say how many there are", p), "set TRIAX_RANK, TRIAX_WORLD_SIZE and TRIAX_LOCAL_RANK")
	}
	r.line = launch.Call(ctx, p.Rank)
	if p.Rank == 0 {
		if r.hub, err = nccl.Listen(ctx, address, p.Size); err != nil {
			return fmt.Errorf("--ranks nccl: %w", err)
		}
		address = r.hub.Address()
		fmt.Fprintf(note, "%s; hub at %s\n", p, address)
	}
	w, err := nccl.Connect(ctx, nccl.Options{Rank: p.Rank, Size: p.Size, Hub: address})
	if err != nil {
		return fmt.Errorf("--ranks nccl, %s: %w", p, err)
	}
	r.world, r.gpus = w, w
	return nil
}

// hubAddress is where rank 0 starts the hub: what the environment names, or the port after torchrun's own on its first host.
func hubAddress(env func(string) string) (string, error) {
	if a := env("TRIAX_HUB"); a != "" {
		return a, nil
	}
	host, port := env("MASTER_ADDR"), env("MASTER_PORT")
	if host == "" || port == "" {
		return "", errors.New("nothing says where the processes meet: neither TRIAX_HUB nor MASTER_ADDR and MASTER_PORT is set")
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65534 {
		return "", fmt.Errorf("MASTER_PORT = %q is no port", port)
	}
	return net.JoinHostPort(host, strconv.Itoa(n+1)), nil
}

// use gives this rank's device to the world, where ranks are devices. left ends that, before the device is closed.
func (r *ranks) use(ctx context.Context, cfg *configs.Config, opts *train.Options) (left func() error, err error) {
	if r.gpus == nil {
		return func() error { return nil }, nil
	}
	if opts.Open == nil {
		return nil, configs.Problems{{Field: "train.device", Value: fmt.Sprintf("%q", cfg.Train.Device), Rule: "--ranks nccl moves the memory of NVIDIA devices only", Hint: `use "cuda", or --ranks mpi`}}
	}
	l, err := library.Load(driver.Find().NCCL)
	if err != nil {
		return nil, fmt.Errorf("--ranks nccl: %w; install it, or name its file with TRIAX_LIBNCCL", err)
	}
	d, err := opts.Open(r.gpus.Rank()).(kept).Wire()
	if err == nil {
		err = r.gpus.Use(ctx, l, d)
	}
	if err != nil {
		return nil, errors.Join(err, r.gpus.Leave())
	}
	return r.gpus.Leave, nil
}

// closed ends this process's part, and the hub when all have said goodbye.
func (r *ranks) closed() error {
	err := r.world.Close()
	if r.hub == nil {
		return err
	}
	select {
	case <-r.hub.Done():
	case <-time.After(10 * time.Second):
	}
	return errors.Join(err, r.hub.Close())
}

// kept is a device that outlives the run: its world has streams on it.
type kept struct{ *cuda.Device }

func (kept) Close() {}
