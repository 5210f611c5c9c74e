package nn

import "triax/tensor"

// Core is attention between queries, keys and values once heads are shared out. Shapes are those of tensor.Attend.
type Core interface {
	// Forward fills o and lse.
	Forward(ctx *Ctx, o, lse, q, k, v *tensor.Tensor, at tensor.Attention) error
	// Backward fills dq, dk and dv.
	Backward(ctx *Ctx, dq, dk, dv, do, o, lse, q, k, v *tensor.Tensor, at tensor.Attention) error
}

// OneDevice is the Core of a rank that holds whole samples.
type OneDevice struct{}

func (OneDevice) Forward(ctx *Ctx, o, lse, q, k, v *tensor.Tensor, at tensor.Attention) error {
	ctx.Dev.Attention(o, lse, q, k, v, at)
	return nil
}

func (OneDevice) Backward(ctx *Ctx, dq, dk, dv, do, o, lse, q, k, v *tensor.Tensor, at tensor.Attention) error {
	ctx.Dev.AttentionGrad(dq, dk, dv, do, o, lse, q, k, v, at)
	return nil
}
