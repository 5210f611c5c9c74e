package local

import (
	"triax/comm"
	"triax/tensor"
)

type float interface{ float32 | float64 }

// kernels combine two rows of equal length; dst may be a or b.
type kernels[T float] struct{ add, max func(dst, a, b []T) }

// block is how many elements are combined at a time: one block of each of two members and of the partial sums stay in the
// first-level cache.
const block = 2048

// slice is the part of a reduction that this member does: elements lo up to hi of everyone's source.
func (m *member) slice() (lo, hi int) {
	c, size := &m.group.calls[m.place], len(m.group.calls)
	if c.kind == comm.KindReduceScatter {
		n := c.dst.Len()
		return m.place * n, (m.place + 1) * n
	}
	return share(c.src.Len(), m.place, size)
}

// share is one member's part of n elements: whole cache lines, so that members do not share one.
func share(n, place, size int) (lo, hi int) {
	const line = 16
	lines := (n + line - 1) / line
	return min(n, lines*place/size*line), min(n, lines*(place+1)/size*line)
}

// reduce combines this member's slice of all sources in the order of places, block by block. The last combination of a
// block goes straight to this member's result, and for an all-reduce from there, while it is in the cache, to all others.
func reduce[T float](m *member, acc []T, combine func(dst, a, b []T)) {
	calls := m.group.calls
	own := &calls[m.place]
	dst := tensor.Slice[T](own.dst)
	lo, hi := m.slice()
	base := 0
	if own.kind == comm.KindReduceScatter {
		base = lo
	}
	last := len(calls) - 1
	for at := lo; at < hi; at += block {
		end := min(hi, at+block)
		sum := tensor.Slice[T](calls[0].src)[at:end]
		for i := 1; i < last; i++ {
			combine(acc[:end-at], sum, tensor.Slice[T](calls[i].src)[at:end])
			sum = acc[:end-at]
		}
		to := dst[at-base : end-base]
		if last == 0 {
			copy(to, sum)
			continue
		}
		combine(to, sum, tensor.Slice[T](calls[last].src)[at:end])
		if own.kind == comm.KindAllReduce {
			for i := range calls {
				if i != m.place {
					copy(tensor.Slice[T](calls[i].dst)[at:end], to)
				}
			}
		}
	}
}

func add[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// maximum keeps NaN, which a comparison would drop.
func maximum[T float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, x := range a {
		if y := b[i]; y > x || y != y {
			x = y
		}
		dst[i] = x
	}
}
