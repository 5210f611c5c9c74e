package local_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"triax/comm"
	"triax/comm/local"
	"triax/cpu"
	"triax/tensor"
)

// BenchmarkCopy is what the machine can do: two goroutines copy a buffer each. A copied byte counts once.
func BenchmarkCopy(b *testing.B) {
	const n = 64 << 20 / 4
	bufs := make([][]float32, 4)
	for i := range bufs {
		bufs[i] = written(n)
	}
	for b.Loop() {
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() { copy(bufs[2*i], bufs[2*i+1]) })
		}
		both.Wait()
	}
	rate(b, 2*4*n)
}

// BenchmarkCollective reports bytes of the whole buffer by time ("algorithm bandwidth").
func BenchmarkCollective(b *testing.B) {
	type call func(m comm.Collective, part, whole *tensor.Tensor) error
	ctx := context.Background()
	calls := []struct {
		name string
		call call
	}{
		{"AllReduce", func(m comm.Collective, _, whole *tensor.Tensor) error {
			_, err := m.AllReduce(ctx, whole, comm.Sum)
			return err
		}},
		{"ReduceScatter", func(m comm.Collective, part, whole *tensor.Tensor) error {
			_, err := m.ReduceScatter(ctx, part, whole)
			return err
		}},
		{"AllGather", func(m comm.Collective, part, whole *tensor.Tensor) error {
			_, err := m.AllGather(ctx, whole, part)
			return err
		}},
	}
	for _, c := range calls {
		for _, ranks := range []int{2, 4} {
			for _, bytes := range []int{4 << 10, 1 << 20, 64 << 20} {
				b.Run(fmt.Sprintf("%s/ranks=%d/KiB=%d", c.name, ranks, bytes>>10), func(b *testing.B) {
					n := bytes / 4
					together(b, ranks, func(m comm.Collective) func() error {
						part, whole := tensor.Of(tensor.F32, written(n/ranks), n/ranks), tensor.Of(tensor.F32, written(n), n)
						return func() error { return c.call(m, part, whole) }
					})
					rate(b, bytes)
				})
			}
		}
	}
}

// BenchmarkBarrier is the price of meeting once more: a collective meets twice.
func BenchmarkBarrier(b *testing.B) {
	for _, ranks := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			together(b, ranks, func(m comm.Collective) func() error {
				return func() error { _, err := m.Barrier(context.Background()); return err }
			})
		})
	}
}

// BenchmarkMessage sends a message back and forth between two ranks; the time is that of a round trip.
func BenchmarkMessage(b *testing.B) {
	w := local.New(2)
	defer w.Close()
	ctx := context.Background()
	heap := tensor.NewHeap(nil, false)
	spec := comm.Spec{Kind: tensor.Activations, DType: tensor.F32, Shape: []int{1024}}
	var both sync.WaitGroup
	play := func(rank, rounds int, x *tensor.Tensor) {
		wire, peer := w.Rank(rank, heap), 1-rank
		for range rounds {
			if x == nil {
				x, _, _ = wire.Recv(ctx, peer, comm.Tag{}, spec)
			}
			wire.Send(ctx, peer, comm.Tag{}, x)
			x = nil
		}
	}
	b.ResetTimer()
	both.Go(func() { play(0, b.N, heap.New(tensor.Activations, tensor.F32, 1024)) })
	both.Go(func() { play(1, b.N, nil) })
	both.Wait()
}

// together runs b.N calls on every rank of a world.
func together(b *testing.B, ranks int, open func(comm.Collective) func() error) {
	w := local.New(ranks)
	defer w.Close()
	members := make([]int, ranks)
	for i := range members {
		members[i] = i
	}
	calls := make([]func() error, ranks)
	for rank := range ranks {
		m, err := w.Rank(rank, nil).Join(context.Background(), "all", members)
		if err != nil {
			b.Fatal(err)
		}
		calls[rank] = open(m)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for _, call := range calls {
		all.Go(func() {
			for range b.N {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func rate(b *testing.B, bytes int) {
	b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

// written is memory of its own: pages never written would all be the one page of zeros, and be read from the cache. It comes from a device's
// heap, as a run's memory does: on huge pages.
func written(n int) []float32 {
	d := cpu.New(cpu.Options{Float: tensor.F32, HugePages: true})
	defer d.Close()
	x := d.New(tensor.Buffers, n).F32()
	for i := range x {
		x[i] = 0 // a write, though it changes nothing
	}
	return x
}
