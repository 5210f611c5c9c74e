//go:build cgo && linux

package mpi

// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"unsafe"

	"triax/comm"
	"triax/tensor"
)

// move runs the library's own collective.
func (c *call) move() {
	if c.DType == tensor.BF16 && (c.Kind == comm.KindAllReduce || c.Kind == comm.KindReduceScatter) {
		c.reduceBF16()
		return
	}
	src, dtype := address(c.src)
	dst, _ := address(c.dst)
	c.pin.Pin((*byte)(src))
	c.pin.Pin((*byte)(dst))
	lib, size, g := c.world.eng.lib.table, c.DType.Size(), len(c.ranks)
	switch c.Kind {
	case comm.KindAllReduce:
		if g == 2 && c.world.eng.lib.table.family == C.tx_open_mpi && c.Len*size >= halfSegment {
			c.reduceHalves(dst, dtype)
			return
		}
		c.run(cut(c.Len, c.most(), func(lo, n int) post {
			return post{"Iallreduce", func(r *C.tx_handle) C.int {
				return C.tx_iallreduce(lib, unsafe.Add(dst, lo*size), C.int(n), dtype, c.operation(), c.comm, r)
			}}
		}), c.finish)
	case comm.KindReduceScatter:
		if c.Len <= maxCount && !c.byRoots() {
			c.run([]post{{"Ireduce_scatter_block", func(r *C.tx_handle) C.int {
				return C.tx_ireduce_scatter(lib, src, dst, C.int(c.Result), dtype, C.tx_sum, c.comm, r)
			}}}, c.finish)
			return
		}
		var posts []post
		for root := range g { // a reduction to each member
			from := unsafe.Add(src, root*c.Result*size)
			posts = append(posts, each(c.Result, func(lo, n int) post {
				return post{"Ireduce", func(r *C.tx_handle) C.int {
					return C.tx_ireduce(lib, unsafe.Add(from, lo*size), unsafe.Add(dst, lo*size), C.int(n), dtype, C.tx_sum, C.int(root), c.comm, r)
				}}
			})...)
		}
		c.run(posts, c.finish)
	case comm.KindAllGather:
		own := unsafe.Add(dst, c.place*c.Len*size)
		if c.inPieces() {
			if own != src {
				copyBytes(own, src, c.Len*size)
			}
			c.flow(c.gatherPieces(dst, dtype), c.finish)
			return
		}
		if c.Result <= maxCount {
			from := src
			if own == src {
				from = nil
			}
			c.run([]post{{"Iallgather", func(r *C.tx_handle) C.int { return C.tx_iallgather(lib, from, dst, C.int(c.Len), dtype, c.comm, r) }}}, c.finish)
			return
		}
		if own != src {
			copyBytes(own, src, c.Len*size)
		}
		var posts []post
		for root := range g {
			at := unsafe.Add(dst, root*c.Len*size)
			posts = append(posts, c.broadcast(at, c.Len, dtype, root)...)
		}
		c.run(posts, c.finish)
	case comm.KindBroadcast:
		c.run(c.broadcast(dst, c.Len, dtype, c.Root), c.finish)
	case comm.KindAllToAll:
		n := c.Len / g
		if c.Len <= maxCount {
			c.run([]post{{"Ialltoall", func(r *C.tx_handle) C.int { return C.tx_ialltoall(lib, src, dst, C.int(n), dtype, c.comm, r) }}}, c.finish)
			return
		}
		var posts []post
		for i := range g {
			to, from := unsafe.Add(src, i*n*size), unsafe.Add(dst, i*n*size)
			if i == c.place {
				copyBytes(from, to, n*size)
				continue
			}
			posts = append(posts, each(n, func(lo, k int) post {
				return post{"Isend", func(r *C.tx_handle) C.int {
					return C.tx_isend(lib, unsafe.Add(to, lo*size), C.int(k), dtype, C.int(i), 1, c.comm, r)
				}}
			})...)
			posts = append(posts, each(n, func(lo, k int) post {
				return post{"Irecv", func(r *C.tx_handle) C.int {
					return C.tx_irecv(lib, unsafe.Add(from, lo*size), C.int(k), dtype, C.int(i), 1, c.comm, r)
				}}
			})...)
		}
		c.run(posts, c.finish)
	}
}

// byRoots tells that a reduction to each member is better than the library's reduce-scatter: Open MPI's non-blocking one sums all at one member and
// scatters from there, which puts three times the bytes through that member's link.
func (c *call) byRoots() bool {
	return c.world.eng.lib.table.family == C.tx_open_mpi && c.Len*c.DType.Size() >= 64<<10
}

// reduceHalves is an all-reduce between two: each member sums a half, and then has both. Open MPI's own, in place, sums all at one member and
// sends it back, with one direction of the link idle at a time.
func (c *call) reduceHalves(at unsafe.Pointer, dtype C.int) {
	lib, size, half := c.world.eng.lib.table, c.DType.Size(), c.Len/2
	part := func(root int) (first unsafe.Pointer, n int) {
		if root == 0 {
			return at, half
		}
		return unsafe.Add(at, half*size), c.Len - half
	}
	var sums, copies []post
	for root := range 2 {
		first, n := part(root)
		sums = append(sums, cut(n, min(maxCount, halfSegment/size), func(lo, k int) post {
			src, dst := unsafe.Add(first, lo*size), unsafe.Pointer(nil)
			if c.place == root {
				src, dst = nil, src
			}
			return post{"Ireduce", func(r *C.tx_handle) C.int {
				return C.tx_ireduce(lib, src, dst, C.int(k), dtype, c.operation(), C.int(root), c.comm, r)
			}}
		})...)
		copies = append(copies, c.broadcast(first, n, dtype, root)...)
	}
	c.run(sums, func() { c.run(copies, c.finish) })
}

// operation is the reduction, as the library knows it.
func (c *call) operation() C.int {
	switch {
	case c.Op == comm.Sum:
		return C.tx_sum
	case c.DType == tensor.F64:
		return C.tx_max_double
	}
	return C.tx_max_float
}

func (c *call) broadcast(at unsafe.Pointer, n int, dtype C.int, root int) []post {
	return each(n, func(lo, k int) post {
		return post{"Ibcast", func(r *C.tx_handle) C.int {
			return C.tx_ibcast(c.world.eng.lib.table, unsafe.Add(at, lo*c.DType.Size()), C.int(k), dtype, C.int(root), c.comm, r)
		}}
	})
}

// each cuts n elements into calls of at most maxCount.
func each(n int, f func(lo, n int) post) []post { return cut(n, maxCount, f) }

func cut(n, most int, f func(lo, n int) post) (posts []post) {
	for lo := 0; lo < n; lo += most {
		posts = append(posts, f(lo, min(most, n-lo)))
	}
	return posts
}

// An all-reduce in several calls under way together lets one's sums run beside another's transfer. Sizes in bytes, measured with
// tools/bench/allreduce.sh: of halves, and of whole calls where that is faster.
const (
	halfSegment = 1 << 20
	segment     = 4 << 20
)

// most is how many elements one call of an all-reduce takes.
func (c *call) most() int {
	if c.world.eng.lib.table.family == C.tx_open_mpi || len(c.ranks) == 2 {
		return min(maxCount, segment/c.DType.Size())
	}
	return maxCount
}

func copyBytes(dst, src unsafe.Pointer, n int) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

// room is C memory until the call ends.
func (c *call) room(bytes int) unsafe.Pointer {
	p := C.calloc(C.size_t(bytes), 1)
	c.scratch = append(c.scratch, p)
	return p
}
