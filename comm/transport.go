package comm

import (
	"context"
	"time"

	"triax/tensor"
)

// Transport moves data between ranks. One value per rank. Implementations: comm/local (goroutines
// of one process), comm/mpi, NCCL. Every wait ends with context.Cause(ctx) when ctx ends.
type Transport interface {
	Rank() int
	Size() int // the world
	// Join opens the collective engine of a group. Every rank joins all its groups up front in
	// one order; name is the same on all members and unique. ranks lists the members by place.
	Join(ctx context.Context, name string, ranks []int) (Collective, error)
	// Send takes over t and starts to send it; it never waits for the receiver. The pending call ends
	// when the transport is done with the memory. Messages are matched by (from, to, tag) and never overtake
	// within one tag.
	Send(ctx context.Context, to int, tag Tag, t *tensor.Tensor) *Pending
	// Recv waits for the message and returns it as a tensor with one reference in this rank's heap.
	Recv(ctx context.Context, from int, tag Tag, want Spec) (*tensor.Tensor, Times, error)
}

// Tag tells messages between two ranks apart: what it is (activation or gradient), of which stage and microbatch.
// Forward and backward never share a tag, so messages to the same peer cannot cross.
type Tag struct {
	Kind  uint8 // TagForward, TagBackward, ...
	Stage int   // the receiving stage
	Micro int
}

// Kinds of point-to-point messages.
const (
	TagForward  uint8 = iota // activations, to the next stage
	TagBackward              // gradients of activations, to the stage before
	TagRing                  // context-parallel keys and values
	TagRingGrad              // and their gradients
)

// Spec is the type and shape of an expected message, and the kind of memory it becomes.
type Spec struct {
	Kind  tensor.Kind
	DType tensor.DType
	Shape []int
}

// Times splits a call: Wait is from being ready until the peers were ready too, Move the transfer itself.
type Times struct{ Wait, Move time.Duration }

// Op is a reduction. Collectives only sum (or take a maximum); nothing in this package divides.
type Op uint8

const (
	Sum Op = iota
	Max
)

// Collective is one rank's end of a group, as a transport provides it; Group adds the ledger.
// All members call the same operations in the same order. Reductions add in an order that is the same on every
// member, so all get the same bits: that of places, or the MPI library's own. Tensors are of any float type.
type Collective interface {
	AllReduce(ctx context.Context, t *tensor.Tensor, op Op) (Times, error)     // in place
	ReduceScatter(ctx context.Context, dst, src *tensor.Tensor) (Times, error) // src g*n → dst n, sum
	AllGather(ctx context.Context, dst, src *tensor.Tensor) (Times, error)     // src n → dst g*n; src may be its own place in dst
	Broadcast(ctx context.Context, t *tensor.Tensor, root int) (Times, error)  // root is a place
	AllToAll(ctx context.Context, dst, src *tensor.Tensor) (Times, error)      // part i of src goes to place i
	Barrier(ctx context.Context) (Times, error)
}

// Pending is an operation under way.
type Pending struct {
	done  chan struct{}
	times Times
	err   error
}

// NewPending returns a pending operation and the function that ends it.
func NewPending() (*Pending, func(Times, error)) {
	p := &Pending{done: make(chan struct{})}
	return p, func(t Times, err error) {
		p.times, p.err = t, err
		close(p.done)
	}
}

// Wait waits for the end of the operation or of ctx.
func (p *Pending) Wait(ctx context.Context) (Times, error) {
	select {
	case <-p.done:
		return p.times, p.err
	default:
	}
	select {
	case <-p.done:
		return p.times, p.err
	case <-ctx.Done():
		return Times{}, context.Cause(ctx)
	}
}
