//go:build cgo && linux

package mpi

// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"triax/comm"
	"triax/tensor"
)

// head tells of a message: what it is, and under which tags of MPI its data come.
type head struct {
	Kind  uint8        `json:"k"`
	Stage int          `json:"s"`
	Micro int          `json:"m"`
	DType tensor.DType `json:"d"`
	Shape []int        `json:"h"`
	Seq   int          `json:"q"`
}

func (h head) tag() comm.Tag { return comm.Tag{Kind: h.Kind, Stage: h.Stage, Micro: h.Micro} }

// sender names a line of messages: those never overtake one another.
type sender struct {
	from int
	tag  comm.Tag
}

// dataTags is how many messages between two ranks may be under way at a time: every MPI has tags up to 32767.
const dataTags = 32000

// Send takes over x. Its memory is given back when the library has sent it.
func (t *transport) Send(_ context.Context, to int, tag comm.Tag, x *tensor.Tensor) *comm.Pending {
	w := t.World
	if to < 0 || to >= w.size || to == w.rank {
		panic(fmt.Sprintf("mpi: rank %d sends to rank %d of %d", w.rank, to, w.size))
	}
	p, end := comm.NewPending()
	start := time.Now()
	w.eng.do(func() {
		seq := w.sent[to]
		w.sent[to]++
		h := head{Kind: tag.Kind, Stage: tag.Stage, Micro: tag.Micro, DType: x.DType, Shape: x.Shape, Seq: 1 + seq%dataTags}
		var pin runtime.Pinner
		parts := pieces(x, &pin)
		left := 1 + len(parts)
		var first error
		done := func(err error) {
			if first == nil {
				first = err
			}
			if left--; left == 0 {
				pin.Unpin()
				x.Release()
				end(comm.Times{Move: time.Since(start)}, first)
			}
		}
		w.tell(to, note{Kind: noteMessage, Head: &h}, done)
		for _, c := range parts {
			w.eng.post("Isend", func(r *C.tx_handle) C.int {
				return C.tx_isend(w.eng.lib.table, c.at, C.int(c.n), c.dtype, C.int(to), C.int(h.Seq), w.comm, r)
			}, done)
		}
	})
	return p
}

// Recv waits for a message's head, and then for its data.
func (t *transport) Recv(ctx context.Context, from int, tag comm.Tag, want comm.Spec) (*tensor.Tensor, comm.Times, error) {
	w := t.World
	if from < 0 || from >= w.size || from == w.rank {
		panic(fmt.Sprintf("mpi: rank %d receives from rank %d of %d", w.rank, from, w.size))
	}
	start := time.Now()
	s := sender{from, tag}
	var h head
	if err := w.until(ctx, func() bool {
		line := w.lines[s]
		if len(line) == 0 {
			return false
		}
		if h = line[0]; len(line) == 1 {
			delete(w.lines, s)
		} else {
			w.lines[s] = line[1:]
		}
		return true
	}); err != nil {
		return nil, comm.Times{}, err
	}
	ready := time.Now()
	x := t.heap.New(want.Kind, h.DType, h.Shape...)
	if err := w.receive(ctx, from, h, x); err != nil {
		x.Release()
		return nil, comm.Times{}, err
	}
	if h.DType != want.DType || !slices.Equal(h.Shape, want.Shape) {
		defer x.Release()
		return nil, comm.Times{}, fmt.Errorf("message %v from rank %d: it is %v, want %v%v", tag, from, x, want.DType, want.Shape)
	}
	return x, comm.Times{Wait: ready.Sub(start), Move: time.Since(ready)}, nil
}

// receive brings a message's data into x. Given up, x keeps a reference for as long as the library may write to it.
func (w *World) receive(ctx context.Context, from int, h head, x *tensor.Tensor) error {
	x.Retain()
	done := make(chan error, 1)
	w.eng.do(func() {
		var pin runtime.Pinner
		parts := pieces(x, &pin)
		left := len(parts)
		var first error
		over := func() {
			pin.Unpin()
			x.Release()
			done <- first
		}
		if left == 0 {
			over()
		}
		for _, c := range parts {
			w.eng.post("Irecv", func(r *C.tx_handle) C.int {
				return C.tx_irecv(w.eng.lib.table, c.at, C.int(c.n), c.dtype, C.int(from), C.int(h.Seq), w.comm, r)
			}, func(err error) {
				if first == nil {
					first = err
				}
				if left--; left == 0 {
					over()
				}
			})
		}
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxCount is the most elements in one call of the library: its counts are ints. Tests lower it.
var maxCount = 1 << 30

// piece is a part of a tensor that one call can take.
type piece struct {
	at    unsafe.Pointer
	n     int
	dtype C.int
}

// pieces are a tensor's elements, in calls of at most maxCount; none where it is empty.
func pieces(t *tensor.Tensor, pin *runtime.Pinner) (all []piece) {
	if t.Len() == 0 {
		return nil
	}
	base, dtype := address(t)
	pin.Pin((*byte)(base))
	for lo := 0; lo < t.Len(); lo += maxCount {
		all = append(all, piece{unsafe.Add(base, lo*t.DType.Size()), min(maxCount, t.Len()-lo), dtype})
	}
	return all
}

// address is where a tensor that is not empty begins, and the type of its elements as the library knows it.
func address(t *tensor.Tensor) (unsafe.Pointer, C.int) {
	switch d := t.Data().(type) {
	case []float32:
		return unsafe.Pointer(&d[0]), C.tx_float
	case []float64:
		return unsafe.Pointer(&d[0]), C.tx_double
	case []int32:
		return unsafe.Pointer(&d[0]), C.tx_int
	case []uint16:
		return unsafe.Pointer(&d[0]), C.tx_short
	}
	panic(fmt.Sprintf("mpi: %v is not in this process's memory", t))
}
