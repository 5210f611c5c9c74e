//go:build cgo && linux

package mpi

// #include "shim.h"
import "C"

import (
	"math"
	"unsafe"

	"triax/comm"
)

// reduceBF16 sums in three moves: members exchange parts, each adds one part of all in float32, in the order of places, and rounds once, to
// the nearest even; for an all-reduce the sums are gathered. The bytes on the wire are those of the best algorithms.
func (c *call) reduceBF16() {
	g := len(c.ranks)
	n := (c.Len + g - 1) / g
	if g*n > maxCount {
		panic("mpi: a reduction of more bfloat16 than one call of MPI can count")
	}
	lib := c.world.eng.lib.table
	src, _ := address(c.src)
	dst, _ := address(c.dst)
	c.pin.Pin((*byte)(src))
	c.pin.Pin((*byte)(dst))
	out, in := c.room(2*g*n), c.room(2*g*n)
	copyBytes(out, src, 2*c.Len)
	exchange := post{"Ialltoall", func(r *C.tx_handle) C.int { return C.tx_ialltoall(lib, out, in, C.int(n), C.tx_short, c.comm, r) }}
	c.run([]post{exchange}, func() {
		parts, sum := unsafe.Slice((*uint16)(in), g*n), unsafe.Slice((*uint16)(out), g*n)[c.place*n:][:n]
		for i := range sum {
			x := wide(parts[i])
			for p := 1; p < g; p++ {
				if y := wide(parts[p*n+i]); c.Op == comm.Sum {
					x += y
				} else if y > x || y != y {
					x = y
				}
			}
			sum[i] = narrow(x)
		}
		if c.Kind == comm.KindReduceScatter {
			copyBytes(dst, unsafe.Pointer(unsafe.SliceData(sum)), 2*n)
			c.finish()
			return
		}
		gather := post{"Iallgather", func(r *C.tx_handle) C.int { return C.tx_iallgather(lib, nil, out, C.int(n), C.tx_short, c.comm, r) }}
		c.run([]post{gather}, func() {
			copyBytes(dst, out, 2*c.Len)
			c.finish()
		})
	})
}

func wide(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

func narrow(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return uint16(b>>16) | 0x40 // stays NaN whatever bits are cut off
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
