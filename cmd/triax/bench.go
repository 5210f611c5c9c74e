package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"triax/comm"
	"triax/comm/local"
	"triax/cpu"
	"triax/plan"
	"triax/tensor"
)

func benchCmd() *cobra.Command {
	var out string
	var steps int
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine in under a minute: kernels, memory, collectives; the planner can read the result",
		Example: `  triax bench --out machine.json
  triax bench --runs 20      # and train two dozen layouts, predicted beside measured
  triax plan configs/small.toml --dp 2 --set cluster.calibrated=machine.json`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := measure(cmd.Context(), cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if steps > 0 {
				if err := runOwn(cmd.Context(), cmd.OutOrStdout(), c, steps); err != nil {
					return err
				}
			}
			if out == "" {
				return nil
			}
			text, err := json.MarshalIndent(c, "", "  ")
			if err != nil {
				return err
			}
			if err := os.WriteFile(out+".part", append(text, '\n'), 0o644); err != nil {
				return err
			}
			return os.Rename(out+".part", out)
		},
	}
	cmd.Flags().IntVar(&steps, "runs", 0, "then train two dozen layouts for so many steps each, and print what was planned beside it")
	cmd.Flags().StringVar(&out, "out", "", "write the machine here, for [cluster] calibrated")
	return cmd
}

// best is the shortest of several runs of f, each of enough rounds to last.
func best(f func()) float64 {
	f()
	least := 0.0
	for range 5 {
		rounds := 0
		start := time.Now()
		for time.Since(start) < 40*time.Millisecond {
			f()
			rounds++
		}
		if t := time.Since(start).Seconds() / float64(rounds); least == 0 || t < least {
			least = t
		}
	}
	return least
}

// measure benches one rank with one thread, and collectives between two.
func measure(ctx context.Context, w io.Writer) (plan.Cluster, error) {
	c, err := plan.Preset("cpu")
	if err != nil {
		return c, err
	}
	c.Cores = runtime.GOMAXPROCS(0)
	d := cpu.New(cpu.Options{Float: tensor.F32, Threads: 1, HugePages: true})
	defer d.Close()
	gemm := func(m, n, k int) float64 {
		a, b, y := d.New(tensor.Workspace, m, k), d.New(tensor.Workspace, n, k), d.New(tensor.Workspace, m, n)
		defer a.Release()
		defer b.Release()
		defer y.Release()
		d.Zero(a)
		d.Zero(b)
		t := best(func() { d.Gemm(y, a, b, false, true, 0) })
		fmt.Fprintf(w, "gemm %4d x %4d x %4d   %8.1f GFLOP/s\n", m, n, k, 2*float64(m)*float64(n)*float64(k)/t/1e9)
		return 2 * float64(m) * float64(n) * float64(k) / t
	}
	large := gemm(1024, 1024, 1024)
	gemm(256, 384, 384)
	thin := gemm(1024, 1024, 64)
	c.Peak, c.Efficiency = large, training(d)/large
	c.Depth = max(0, 64*(large/thin-1)) // rate = large k/(k + depth)

	tiny, other := d.New(tensor.Workspace, 64), d.New(tensor.Workspace, 64)
	d.Zero(tiny)
	d.Zero(other)
	// What an op costs beside its work: the call, and the memory taken and given back.
	c.Launch = best(func() {
		y := d.New(tensor.Workspace, 64)
		d.Add(tiny, other)
		y.Release()
	})
	big, more := d.New(tensor.Workspace, 1<<23), d.New(tensor.Workspace, 1<<23)
	d.Zero(big)
	d.Zero(more)
	add := 12 * float64(1<<23) / best(func() { d.Add(big, more) })
	fmt.Fprintf(w, "add of 32 MiB           %8.1f GB/s; of 64 elements %.2f us\n", add/1e9, c.Launch*1e6)
	c.Bandwidth, c.Stream = passes(d), 1
	fmt.Fprintf(w, "passes of a layer       %8.1f GB/s (add, GELU both ways, LayerNorm both ways)\n", c.Bandwidth/1e9)

	at := tensor.Attention{Samples: 1, Seq: 256, Heads: 6, KVHeads: 6, HeadDim: 64}
	n := at.Seq * at.Heads * at.HeadDim
	var x [5]*tensor.Tensor
	for i := range x {
		x[i] = d.New(tensor.Workspace, at.Seq, n/at.Seq)
		d.Zero(x[i])
	}
	lse := d.New(tensor.Workspace, 1, at.Heads, at.Seq)
	t := best(func() { d.Attention(x[0], lse, x[1], x[2], x[3], at) })
	c.AttentionRate = min(1, 2*float64(at.Heads*at.HeadDim)*float64(at.Seq*at.Seq)/t/c.Peak)
	fmt.Fprintf(w, "attention 256 x 6 x 64  %8.1f GFLOP/s (causal half)\n", c.AttentionRate*c.Peak/1e9)

	small, err := allReduce(ctx, 256)
	if err != nil {
		return c, err
	}
	bulk, err := allReduce(ctx, 4<<20)
	if err != nil {
		return c, err
	}
	bytes := float64(4 << 22)
	c.Links = []plan.Link{{Name: "memory", Bandwidth: bytes / bulk, Latency: small / 4, Base: small / 2}}
	fmt.Fprintf(w, "all-reduce, two ranks: 1 KiB in %.1f us, 16 MiB at %.1f GB/s\n", small*1e6, bytes/bulk/1e9)
	return c, nil
}

// training is the rate of a layer's three products (forward, input and weight gradient) with operands that come from memory.
func training(d *cpu.Device) float64 {
	const m, n, k = 2048, 1024, 256
	x, w, y := d.New(tensor.Workspace, m, k), d.New(tensor.Workspace, n, k), d.New(tensor.Workspace, m, n)
	for _, t := range []*tensor.Tensor{x, w, y} {
		d.Zero(t)
		defer t.Release()
	}
	t := best(func() {
		d.Gemm(y, x, w, false, true, 0)
		d.Gemm(x, y, w, false, false, 0)
		d.Gemm(w, y, x, true, false, 1)
	})
	return 3 * 2 * m * n * k / t
}

// passes is the bytes/s of a layer's passes over activations, as the planner counts their bytes.
func passes(d *cpu.Device) float64 {
	const rows, cols = 2048, 512
	var x [4]*tensor.Tensor
	for i := range x {
		x[i] = d.New(tensor.Workspace, rows, cols)
		d.Zero(x[i])
		defer x[i].Release()
	}
	w, b, mean, rstd := d.New(tensor.Workspace, cols), d.New(tensor.Workspace, cols), d.New(tensor.Workspace, rows), d.New(tensor.Workspace, rows)
	d.Zero(w)
	d.Zero(b)
	t := best(func() {
		d.Add(x[0], x[1])
		d.Gelu(x[2], x[0])
		d.GeluGrad(x[3], x[0], x[1])
		d.LayerNorm(x[2], mean, rstd, x[0], w, b, 1e-5)
		d.LayerNormInput(x[3], x[1], x[0], w, mean, rstd)
		d.LayerNormWeight(w, b, x[1], x[0], mean, rstd)
	})
	return (3 + 2 + 3 + 2 + 3 + 2) * 4 * rows * cols / t
}

// allReduce is the time of one among two ranks.
func allReduce(ctx context.Context, n int) (float64, error) {
	world := local.New(2)
	defer world.Close()
	times := make([]float64, 2)
	g, ctx := errgroup.WithContext(ctx)
	for rank := range 2 {
		g.Go(func() error {
			heap := tensor.NewHeap(nil, false)
			group, err := comm.NewGroup(ctx, world.Rank(rank, heap), "bench", "bench", []int{0, 1}, nil)
			if err != nil {
				return err
			}
			x := heap.New(tensor.Workspace, tensor.F32, n)
			clear(x.F32())
			rounds := max(20, min(20000, 1<<26/(n+1)))
			for i := range rounds + rounds/5 {
				if i == rounds/5 {
					times[rank] = float64(time.Now().UnixNano())
				}
				if err := group.AllReduce(ctx, x, comm.Sum); err != nil {
					return err
				}
			}
			times[rank] = (float64(time.Now().UnixNano()) - times[rank]) / 1e9 / float64(rounds)
			return nil
		})
	}
	err := g.Wait()
	return max(times[0], times[1]), err
}
