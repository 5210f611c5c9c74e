package nn

import (
	"context"

	"triax/tensor"
)

// Ctx is what a layer needs to know about the call. The embedded context carries cancellation only.
type Ctx struct {
	context.Context
	Dev   tensor.Device
	Batch *Batch
	Train bool   // false: dropout off, and Saved is released unused
	Seed  uint64 // of the run
	Step  int    // from 1
	// Even spreads tokens over experts in turn, whatever the router says: on paper nobody knows what it says.
	Even bool
	// Cache, where there is one, gets and gives the keys and values of earlier tokens; Train is then false.
	Cache *Cache
	// AddLoss takes losses that layers make besides the last one's; nil drops them.
	AddLoss func(loss float64)
}

// Batch is one microbatch on one rank. T = Samples*Seq tokens, flat, sample after sample. With context parallelism Seq is
// this rank's share of every sample, in two stretches: the first of all samples, then the second of all samples.
type Batch struct {
	Samples, Seq int
	Tokens       *tensor.Tensor // [T] I32
	Targets      *tensor.Tensor // [T] I32, negative = masked
	Positions    *tensor.Tensor // [T] I32
	Index        *tensor.Tensor // [T] I32: the token's number in the global batch, for dropout
	SampleIndex  *tensor.Tensor // [Samples] I32
	Segments     *tensor.Tensor // [T] I32 or nil: document numbers inside a sample; with context parallelism of all stretches, in the sample's order
	Scale        float64        // 1 / valid tokens of the global batch: the only normaliser there is
	SampleScale  float64        // 1 / samples of the global batch, for losses that are counted by sample
	SampleSeq    int            // S: tokens of a whole sample
	RowSample    []int32        // [T], on the host: which of this microbatch's samples a token belongs to
}

// Saved is what a forward keeps for its backward. Release drops it unused.
type Saved interface{ Release() }

// Layer is one entry of a model's flat list; a pipeline stage is a run of them.
//
// Ownership: Forward takes over x and gives y away; BackwardInput takes over dy and gives dx away.
// Saved belongs to the caller between calls; BackwardWeight ends it.
//
// For every Forward in training there is one BackwardInput (the I half, which stores in s what the
// weight gradient still needs) and after it one BackwardWeight (the W half, which adds into Param.Grad).
// Parameters' Data are needed during Forward and BackwardInput, Grad during BackwardWeight only.
// Several forwards may be in flight before the first backward, each with its own Saved.
// Errors come from communication; wrong shapes panic.
type Layer interface {
	Name() string
	Params() []*Param
	Forward(ctx *Ctx, x *tensor.Tensor) (y *tensor.Tensor, s Saved, err error)
	BackwardInput(ctx *Ctx, s Saved, dy *tensor.Tensor) (dx *tensor.Tensor, err error)
	BackwardWeight(ctx *Ctx, s Saved) error
}

// Joined is a layer that can do both halves of its backward at once, and so put communication of the one beside computation
// of the other. It computes what BackwardInput followed by BackwardWeight computes, to the last bit.
type Joined interface {
	Backward(ctx *Ctx, s Saved, dy *tensor.Tensor) (dx *tensor.Tensor, err error)
}

// JoinedLinear is the same for a Linear.
type JoinedLinear interface {
	Backward(ctx *Ctx, s Saved, dys []*tensor.Tensor) (dx *tensor.Tensor, err error)
}

// Backward runs both halves, at once where the layer can.
func Backward(ctx *Ctx, l Layer, s Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	if j, ok := l.(Joined); ok {
		return j.Backward(ctx, s, dy)
	}
	dx, err := l.BackwardInput(ctx, s, dy)
	if err != nil {
		return nil, err
	}
	return dx, l.BackwardWeight(ctx, s)
}

// backwardLinear is Backward for a Linear.
func backwardLinear(ctx *Ctx, l Linear, s Saved, dys []*tensor.Tensor) (*tensor.Tensor, error) {
	if j, ok := l.(JoinedLinear); ok {
		return j.Backward(ctx, s, dys)
	}
	dx, err := l.BackwardInput(ctx, s, dys)
	if err != nil {
		return nil, err
	}
	return dx, l.BackwardWeight(ctx, s)
}

// Linear is one or more matrices that share an input: y_i = x W_i^T (+ b_i), W_i [Out_i In].
// Ownership as for Layer. Inside a model it is used by composite layers.
type Linear interface {
	Params() []*Param
	Forward(ctx *Ctx, x *tensor.Tensor) (ys []*tensor.Tensor, s Saved, err error)
	BackwardInput(ctx *Ctx, s Saved, dys []*tensor.Tensor) (dx *tensor.Tensor, err error)
	BackwardWeight(ctx *Ctx, s Saved) error
}
