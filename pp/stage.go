package pp

import (
	"context"

	"triax/tensor"
)

// Stage is one virtual pipeline stage's computation on this rank. Micro counts from 0.
//
// Ownership: inputs are taken over, outputs given away. The first stage gets a nil x and returns a nil dx; the
// last returns a nil y and gets a nil dy.
type Stage interface {
	Forward(ctx context.Context, micro int, x *tensor.Tensor) (y *tensor.Tensor, err error)
	// BackwardInput and BackwardWeight are the I and W halves of a microbatch; Backward is both, layer by layer,
	// so that what the weight gradient needs is dropped early.
	BackwardInput(ctx context.Context, micro int, dy *tensor.Tensor) (dx *tensor.Tensor, err error)
	BackwardWeight(ctx context.Context, micro int) error
	Backward(ctx context.Context, micro int, dy *tensor.Tensor) (dx *tensor.Tensor, err error)
	// Reduce is the R op: this stage's gradients are complete on this rank.
	Reduce(ctx context.Context) error
}
