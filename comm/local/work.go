package local

import (
	"triax/comm"
	"triax/tensor"
)

// scratch is what a member needs beside the tensors.
type scratch struct {
	f32  room[float32]
	f64  room[float64]
	bf16 room[uint16]
	wide []float32
}

// work is this member's slice of a collective, between the two meetings.
func (m *member) work() {
	c := &m.group.calls[m.place]
	if c.src == nil {
		return
	}
	switch c.src.DType {
	case tensor.F32:
		work(m, &m.scratch.f32, kernels[float32]{addF32, maximum[float32], sumF32})
	case tensor.F64:
		work(m, &m.scratch.f64, kernels[float64]{addF64, maximum[float64], sumF64})
	case tensor.BF16:
		if c.kind == comm.KindAllReduce || c.kind == comm.KindReduceScatter {
			m.reduceBF16()
		} else {
			move[uint16](m)
		}
	case tensor.I32:
		move[int32](m)
	}
}

func work[T float](m *member, room *room[T], k kernels[T]) {
	c := &m.group.calls[m.place]
	switch c.kind {
	case comm.KindAllReduce, comm.KindReduceScatter:
		if room.acc == nil {
			room.acc = make([]T, block)
		}
		reduce(m, room, k)
	default:
		move[T](m)
	}
}

// move is the collectives that only copy. Each member writes its own result.
func move[T any](m *member) {
	g, place := m.group, m.place
	c := &g.calls[place]
	dst, src := tensor.Slice[T](c.dst), tensor.Slice[T](c.src)
	switch c.kind {
	case comm.KindAllGather:
		n := len(src)
		for k := range g.calls {
			i := (place + k) % len(g.calls) // each starts elsewhere, so that they do not all read one member's memory
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
		n := len(src) / len(g.calls)
		for k := range g.calls {
			i := (place + k) % len(g.calls)
			copy(dst[i*n:(i+1)*n], tensor.Slice[T](g.calls[i].src)[place*n:])
		}
	}
}
