package local

import (
	"fmt"

	"triax/comm"
	"triax/tensor"
)

// work is one member's slice of a collective, between the two meetings.
func (g *group) work(place int) {
	c := &g.calls[place]
	if c.src == nil {
		return
	}
	switch c.src.DType {
	case tensor.F32:
		work[float32](g, place, sumF32)
	case tensor.F64:
		work[float64](g, place, sum[float64])
	default:
		panic(fmt.Sprintf("local: %s of %v: collectives work on float32 and float64", c.kind, c.src.DType))
	}
}

type float interface{ float32 | float64 }

func work[T float](g *group, place int, add func(dst, x []T)) {
	c, size := &g.calls[place], len(g.calls)
	dst, src := tensor.Slice[T](c.dst), tensor.Slice[T](c.src)
	switch c.kind {
	case comm.KindAllReduce:
		lo, hi := share(len(src), place, size)
		if c.op == comm.Max {
			add = maximum[T]
		}
		reduce(g, lo, hi, add, func(at int, x []T) {
			for i := range g.calls {
				copy(tensor.Slice[T](g.calls[i].dst)[at:], x)
			}
		})
	case comm.KindReduceScatter:
		n := len(dst)
		reduce(g, place*n, (place+1)*n, add, func(at int, x []T) { copy(dst[at-place*n:], x) })
	case comm.KindAllGather:
		n := len(src)
		for i := range g.calls {
			from := tensor.Slice[T](g.calls[i].src)
			if to := dst[i*n : (i+1)*n]; n > 0 && &to[0] != &from[0] {
				copy(to, from)
			}
		}
	case comm.KindBroadcast:
		if place != c.root {
			copy(dst, tensor.Slice[T](g.calls[c.root].src))
		}
	case comm.KindAllToAll:
		n := len(src) / size
		for i := range g.calls {
			copy(dst[i*n:(i+1)*n], tensor.Slice[T](g.calls[i].src)[place*n:])
		}
	}
}

// share is the part of n elements that a member reduces: whole cache lines, so that members do not share one.
func share(n, place, size int) (lo, hi int) {
	const line = 16
	lines := (n + line - 1) / line
	return min(n, lines*place/size*line), min(n, lines*(place+1)/size*line)
}

// block is how many elements are summed at a time: their partial sums stay in the first-level cache.
const block = 2048

// reduce combines elements lo up to hi of all members' sources in the order of places, and gives them away block by block.
func reduce[T float](g *group, lo, hi int, add func(dst, x []T), give func(at int, x []T)) {
	var buf [block]T
	for at := lo; at < hi; at += block {
		n := min(block, hi-at)
		acc := buf[:n]
		copy(acc, tensor.Slice[T](g.calls[0].src)[at:at+n])
		for i := 1; i < len(g.calls); i++ {
			add(acc, tensor.Slice[T](g.calls[i].src)[at:at+n])
		}
		give(at, acc)
	}
}

func sum[T float](dst, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += x[i]
	}
}

func sumF32(dst, x []float32) { sum(dst, x) }

// maximum keeps NaN, which a comparison would drop.
func maximum[T float](dst, x []T) {
	x = x[:len(dst)]
	for i, a := range dst {
		if b := x[i]; b > a || b != b {
			dst[i] = b
		}
	}
}
