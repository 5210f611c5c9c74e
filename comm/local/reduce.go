package local

import (
	"triax/comm"
	"triax/tensor"
)

type float interface{ float32 | float64 }

// kernels combine two rows of equal length; dst may be a or b.
type kernels[T float] struct {
	add, max func(dst, a, b []T)
	// sum is the sum of rows, in their order, put in each of others, in one pass; it says how many of n elements it has done. A
	// destination may be a source.
	sum func(dst, src []*T, n int) int
}

// room is a member's memory for reductions, made at the first use: a block of partial sums, and where the rows are.
type room[T any] struct {
	acc      []T
	dst, src []*T
}

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
func reduce[T float](m *member, room *room[T], k kernels[T]) {
	calls := m.group.calls
	own := &calls[m.place]
	dst := tensor.Slice[T](own.dst)
	lo, hi := m.slice()
	base := 0
	if own.kind == comm.KindReduceScatter {
		base = lo
	}
	combine, acc, last := k.max, room.acc, len(calls)-1
	if own.op == comm.Sum {
		combine = k.add
		if last > 0 {
			lo = whole(m, room, k.sum, lo, hi, base)
		}
	}
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

// stretch is the elements of a row that are summed at once: a goroutine in assembly cannot be stopped by the collector.
const stretch = 1 << 15

// whole sums by the kernel for many rows, as far as it goes, and returns how far.
func whole[T any](m *member, room *room[T], sum func(dst, src []*T, n int) int, lo, hi, base int) int {
	calls := m.group.calls
	own := &calls[m.place]
	at := lo
	for at < hi {
		room.dst, room.src = room.dst[:0], room.src[:0]
		for i := range calls {
			room.src = append(room.src, &tensor.Slice[T](calls[i].src)[at])
			if own.kind == comm.KindAllReduce {
				room.dst = append(room.dst, &tensor.Slice[T](calls[i].dst)[at])
			}
		}
		if own.kind == comm.KindReduceScatter {
			room.dst = append(room.dst, &tensor.Slice[T](own.dst)[at-base])
		}
		done := sum(room.dst, room.src, min(stretch, hi-at))
		if at += done; done == 0 {
			break
		}
	}
	clear(room.dst) // nobody's memory is held from here on
	clear(room.src)
	return at
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
