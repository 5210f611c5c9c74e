//go:build cgo && linux

package mpi

// #include "shim.h"
import "C"

import "unsafe"

// Open MPI sends a message of more than its eager limit, 64 KiB over TCP, only when the receiver has asked for it; and what a receiver asks waits behind the
// data that go the other way on the same connection. Two ranks that send to each other at the same time then take turns, and half of the link
// is idle. Pieces below the limit go at once.
var pieceBytes = 60000 // tests lower it

// afloat is how many messages to and from one member are under way at a time.
const afloat = 64

// inPieces tells that a gathering goes in messages of pieceBytes, each member's part to each other.
func (c *call) inPieces() bool {
	return c.world.eng.lib.table.family == C.tx_open_mpi && c.Len*c.DType.Size() > pieceBytes
}

// gatherPieces sends this member's part, which is in its place, to all others, and receives theirs; piece by piece, so that the early ones of all members
// are under way together.
func (c *call) gatherPieces(at unsafe.Pointer, dtype C.int) (posts []post) {
	lib, size, g := c.world.eng.lib.table, c.DType.Size(), len(c.ranks)
	for lo, n := 0, min(maxCount, pieceBytes/size); lo < c.Len; lo += n {
		k := C.int(min(n, c.Len-lo))
		own := unsafe.Add(at, (c.place*c.Len+lo)*size)
		for step := 1; step < g; step++ { // members turn to different ones first
			from, to := (c.place+g-step)%g, C.int((c.place+step)%g)
			in := unsafe.Add(at, (from*c.Len+lo)*size)
			posts = append(posts,
				post{"Irecv", func(r *C.tx_handle) C.int { return C.tx_irecv(lib, in, k, dtype, C.int(from), 1, c.comm, r) }},
				post{"Isend", func(r *C.tx_handle) C.int { return C.tx_isend(lib, own, k, dtype, to, 1, c.comm, r) }})
		}
	}
	return posts
}

// flow runs calls in their order, so many at a time, and goes on when all have ended.
func (c *call) flow(posts []post, then func()) {
	left, next := len(posts), 0
	var first error
	var more func()
	more = func() {
		p := posts[next]
		next++
		c.world.eng.post(p.name, p.f, func(err error) {
			if first == nil {
				first = err
			}
			if next < len(posts) {
				more()
			}
			if left--; left > 0 {
				return
			}
			if first != nil {
				c.end(first)
				return
			}
			then()
		})
	}
	for i := 0; i < afloat*(len(c.ranks)-1) && next < len(posts); i++ {
		more()
	}
}
