package staged

import (
	"context"
	"time"

	"triax/comm"
	"triax/tensor"
)

// Memory is a device's memory that Go cannot read. Both copies are between tensors of one type and length, may be called from any goroutine, and
// come after the work given to the device before.
type Memory interface {
	Heap() *tensor.Heap
	Fetch(host, t *tensor.Tensor) error // host = t
	Place(t, host *tensor.Tensor) error // t = host
}

// Transport is one rank's end. It implements comm.Transport.
type Transport struct {
	mem   Memory
	host  *tensor.Heap
	inner comm.Transport
}

// New makes a rank's transport of one that carries host memory. open gets the heap that the inner transport receives into.
func New(mem Memory, open func(host *tensor.Heap) comm.Transport) *Transport {
	t := &Transport{mem: mem, host: tensor.NewHeap(nil, false)}
	t.inner = open(t.host)
	return t
}

// Inner is the transport of host memory, and the heap it receives into.
func (t *Transport) Inner() (comm.Transport, *tensor.Heap) { return t.inner, t.host }

func (t *Transport) Rank() int { return t.inner.Rank() }
func (t *Transport) Size() int { return t.inner.Size() }

// Send fetches x, and sends the copy.
func (t *Transport) Send(ctx context.Context, to int, tag comm.Tag, x *tensor.Tensor) *comm.Pending {
	copied := t.like(x)
	err := t.mem.Fetch(copied, x)
	x.Release()
	if err != nil {
		copied.Release()
		p, end := comm.NewPending()
		end(comm.Times{}, err)
		return p
	}
	return t.inner.Send(ctx, to, tag, copied)
}

// Recv places what was received.
func (t *Transport) Recv(ctx context.Context, from int, tag comm.Tag, want comm.Spec) (*tensor.Tensor, comm.Times, error) {
	host, times, err := t.inner.Recv(ctx, from, tag, want)
	if err != nil {
		return nil, times, err
	}
	defer host.Release()
	start := time.Now()
	x := t.mem.Heap().New(want.Kind, want.DType, want.Shape...)
	if err := t.mem.Place(x, host); err != nil {
		x.Release()
		return nil, times, err
	}
	times.Move += time.Since(start)
	return x, times, nil
}

// like is host memory for a copy of x.
func (t *Transport) like(x *tensor.Tensor) *tensor.Tensor {
	return t.host.New(tensor.Buffers, x.DType, x.Shape...)
}

// Join opens the inner group.
func (t *Transport) Join(ctx context.Context, name string, ranks []int) (comm.Collective, error) {
	inner, err := t.inner.Join(ctx, name, ranks)
	if err != nil {
		return nil, err
	}
	g := &group{Transport: t, inner: inner}
	for place, rank := range ranks {
		if rank == t.Rank() {
			g.place = place
		}
	}
	return g, nil
}
