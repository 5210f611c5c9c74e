//go:build cgo && linux

package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	wires "triax/comm/nccl"
	"triax/configs"
	"triax/cuda"
	"triax/cuda/nccl"
	"triax/cuda/nccl/fake"
	"triax/tensor"
)

// TestNCCLTiny: ranks that each have one of the emulated devices and run as processes do, over the transport for NVIDIA's devices, train configs/tiny.toml on
// a 2x2x2 mesh with the losses that the same devices have over host memory, to the last bits that a sum's order can change.
//
// The bound is TestCUDATiny's without the layers: only sums over two ranks and their order differ.
func TestNCCLTiny(t *testing.T) {
	if os.Getenv("TRIAX_CUDA") != "" {
		t.Skip("SKIPPED: several ranks on one GPU, which NCCL refuses")
	}
	cfg, err := configs.Load("../configs/tiny.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Train.Steps, cfg.Train.EvalBatches = 2, 0
	if testing.Short() {
		cfg.Train.Steps = 1
	}
	cfg.Mesh.PP, cfg.Mesh.DP, cfg.Mesh.TP, cfg.Zero.Stage, cfg.Pipeline.Microbatches = 2, 2, 2, 3, 2
	open := gpus(t, tensor.F32)
	want, err := Run(context.Background(), cfg, Options{Open: open})
	if err != nil {
		t.Fatal(err)
	}
	got, err := overNCCL(t, cfg, open)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Loss {
		if d := math.Abs(got.Loss[i] - want.Loss[i]); d > 1e-6*want.Loss[i] {
			t.Errorf("step %d: loss %v, over host memory %v", i+1, got.Loss[i], want.Loss[i])
		}
		if d := math.Abs(got.GradNorm[i]/want.GradNorm[i] - 1); d > 1e-5 {
			t.Errorf("step %d: norm %v, over host memory %v", i+1, got.GradNorm[i], want.GradNorm[i])
		}
	}
	t.Logf("losses %v, over host memory %v", got.Loss, want.Loss)
}

// overNCCL trains with every rank a world of its own, as processes are, and returns rank 0's result.
func overNCCL(t *testing.T, cfg *configs.Config, open func(rank int) tensor.Device) (*Result, error) {
	t.Helper()
	path, err := fake.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	library, err := nccl.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	size := cfg.Mesh.World()
	hub, err := wires.Listen(t.Context(), "127.0.0.1:0", size)
	if err != nil {
		t.Fatal(err)
	}
	results, errs := make([]*Result, size), make([]error, size)
	var all sync.WaitGroup
	for rank := range size {
		all.Go(func() {
			dev := open(rank)
			w, err := dev.(*cuda.Device).Wire()
			if err == nil {
				var world *wires.World
				o := wires.Options{Rank: rank, Size: size, Hub: hub.Address(), Library: library, Device: w, Patience: time.Minute}
				if world, err = wires.Open(t.Context(), o); err == nil {
					results[rank], err = Run(t.Context(), cfg, Options{World: world, Open: func(int) tensor.Device { return unclosed{dev.(*cuda.Device)} }})
					err = errors.Join(err, world.Close())
				}
			}
			if err != nil {
				errs[rank] = fmt.Errorf("rank %d: %w", rank, err)
			}
			dev.Close()
		})
	}
	all.Wait()
	return results[0], errors.Join(append(errs, hub.Close())...)
}

// unclosed is a device that its world still needs when the run has ended.
type unclosed struct{ *cuda.Device }

func (unclosed) Close() {}
