package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"triax/comm"
	"triax/comm/local"
	"triax/cpu"
	"triax/plan"
	"triax/tensor"
)

// repeats is how often everything is measured: what disturbs the machine for a second spoils one of them.
const repeats = 3

// seconds of one rank with one thread, and of collectives between two.
type seconds struct {
	large, middle, thin, training float64 // products
	launch, add, passes           float64
	attention                     float64
	small, bulk                   float64 // all-reduces
}

// sizes that are measured.
const (
	trainM, trainN, trainK = 2048, 1024, 256
	passRows, passCols     = 2048, 512
	addElements            = 1 << 23
	bulkElements           = 4 << 20
)

var benchedHeads = tensor.Attention{Samples: 1, Seq: 256, Heads: 6, KVHeads: 6, HeadDim: 64}

// measure benches this machine and prints what it saw.
func measure(ctx context.Context, w io.Writer) (plan.Cluster, error) {
	c, err := plan.Preset("cpu")
	if err != nil {
		return c, err
	}
	c.Cores = runtime.GOMAXPROCS(0)
	d := cpu.New(cpu.Options{Float: tensor.F32, Threads: 1, HugePages: true})
	defer d.Close()
	var t seconds
	for i := range repeats {
		now, err := measureOnce(ctx, d)
		if err != nil {
			return c, err
		}
		if i == 0 {
			t = now
		}
		for _, x := range []struct {
			to *float64
			v  float64
		}{{&t.large, now.large}, {&t.middle, now.middle}, {&t.thin, now.thin}, {&t.training, now.training}, {&t.launch, now.launch}, {&t.add, now.add},
			{&t.passes, now.passes}, {&t.attention, now.attention}, {&t.small, now.small}, {&t.bulk, now.bulk}} {
			*x.to = min(*x.to, x.v)
		}
	}
	t.describe(&c)
	t.print(w)
	return c, nil
}

func products(m, n, k int) float64 { return 2 * float64(m) * float64(n) * float64(k) }

// describe sets the constants of a plan.
func (t seconds) describe(c *plan.Cluster) {
	large, thin := products(1024, 1024, 1024)/t.large, products(1024, 1024, 64)/t.thin
	c.Peak, c.Efficiency = large, 3*products(trainM, trainN, trainK)/t.training/large
	c.Depth = max(0, 64*(large/thin-1)) // rate = large k/(k + depth)
	c.Launch = t.launch
	c.Bandwidth, c.Stream = passedBytes/t.passes, 1
	c.AttentionRate = min(1, seen/t.attention/c.Peak)
	c.Links = []plan.Link{{Name: "memory", Bandwidth: 4 * bulkElements / t.bulk, Latency: t.small / 4, Base: t.small / 2}}
}

const (
	// passedBytes is what the planner counts for the passes that are measured: 3 + 2 + 3 + 2 + 3 + 2 tensors.
	passedBytes = 15 * 4 * passRows * passCols
	// seen is the FLOPs of the attention that is measured, causal half.
	seen = 2 * 6 * 64 * 256 * 256
)

func (t seconds) print(w io.Writer) {
	for _, g := range []struct {
		m, n, k int
		t       float64
	}{{1024, 1024, 1024, t.large}, {256, 384, 384, t.middle}, {1024, 1024, 64, t.thin}} {
		fmt.Fprintf(w, "gemm %4d x %4d x %4d   %8.1f GFLOP/s\n", g.m, g.n, g.k, products(g.m, g.n, g.k)/g.t/1e9)
	}
	fmt.Fprintf(w, "add of 32 MiB           %8.1f GB/s; of 64 elements %.2f us\n", 12*addElements/t.add/1e9, t.launch*1e6)
	fmt.Fprintf(w, "passes of a layer       %8.1f GB/s (add, GELU both ways, LayerNorm both ways)\n", passedBytes/t.passes/1e9)
	fmt.Fprintf(w, "attention 256 x 6 x 64  %8.1f GFLOP/s (causal half)\n", seen/t.attention/1e9)
	fmt.Fprintf(w, "all-reduce, two ranks: 1 KiB in %.1f us, 16 MiB at %.1f GB/s\n", t.small*1e6, 4*bulkElements/t.bulk/1e9)
}

func measureOnce(ctx context.Context, d *cpu.Device) (t seconds, err error) {
	t.large, t.middle, t.thin = gemm(d, 1024, 1024, 1024), gemm(d, 256, 384, 384), gemm(d, 1024, 1024, 64)
	t.training, t.passes, t.attention = training(d), passes(d), attention(d)
	tiny, other := zeros(d, 64), zeros(d, 64)
	defer release(tiny, other)
	// What an op costs beside its work: the call, and the memory taken and given back.
	t.launch = best(func() {
		y := d.New(tensor.Workspace, 64)
		d.Add(tiny, other)
		y.Release()
	})
	big, more := zeros(d, addElements), zeros(d, addElements)
	defer release(big, more)
	t.add = best(func() { d.Add(big, more) })
	if t.small, err = allReduce(ctx, 256); err != nil {
		return t, err
	}
	t.bulk, err = allReduce(ctx, bulkElements)
	return t, err
}

func zeros(d *cpu.Device, shape ...int) *tensor.Tensor {
	t := d.New(tensor.Workspace, shape...)
	d.Zero(t)
	return t
}

func release(ts ...*tensor.Tensor) {
	for _, t := range ts {
		t.Release()
	}
}

func gemm(d *cpu.Device, m, n, k int) float64 {
	a, b, y := zeros(d, m, k), zeros(d, n, k), zeros(d, m, n)
	defer release(a, b, y)
	return best(func() { d.Gemm(y, a, b, false, true, 0) })
}

func attention(d *cpu.Device) float64 {
	at := benchedHeads
	var x [4]*tensor.Tensor
	for i := range x {
		x[i] = zeros(d, at.Seq, at.Heads*at.HeadDim)
		defer x[i].Release()
	}
	lse := zeros(d, 1, at.Heads, at.Seq)
	defer lse.Release()
	return best(func() { d.Attention(x[0], lse, x[1], x[2], x[3], at) })
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

// training is the time of a layer's three products (forward, input and weight gradient) with operands that come from memory.
func training(d *cpu.Device) float64 {
	const m, n, k = trainM, trainN, trainK
	x, w, y := d.New(tensor.Workspace, m, k), d.New(tensor.Workspace, n, k), d.New(tensor.Workspace, m, n)
	for _, t := range []*tensor.Tensor{x, w, y} {
		d.Zero(t)
		defer t.Release()
	}
	return best(func() {
		d.Gemm(y, x, w, false, true, 0)
		d.Gemm(x, y, w, false, false, 0)
		d.Gemm(w, y, x, true, false, 1)
	})
}

// passes is the time of a layer's passes over activations.
func passes(d *cpu.Device) float64 {
	const rows, cols = passRows, passCols
	var x [4]*tensor.Tensor
	for i := range x {
		x[i] = d.New(tensor.Workspace, rows, cols)
		d.Zero(x[i])
		defer x[i].Release()
	}
	w, b, mean, rstd := d.New(tensor.Workspace, cols), d.New(tensor.Workspace, cols), d.New(tensor.Workspace, rows), d.New(tensor.Workspace, rows)
	d.Zero(w)
	d.Zero(b)
	return best(func() {
		d.Add(x[0], x[1])
		d.Gelu(x[2], x[0])
		d.GeluGrad(x[3], x[0], x[1])
		d.LayerNorm(x[2], mean, rstd, x[0], w, b, 1e-5)
		d.LayerNormInput(x[3], x[1], x[0], w, mean, rstd)
		d.LayerNormWeight(w, b, x[1], x[0], mean, rstd)
	})
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
