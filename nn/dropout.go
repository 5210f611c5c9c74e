package nn

import "triax/tensor"

// dropout zeroes elements of [T' D] activations and scales up the rest (Srivastava et al. 2014, §4). Nothing is kept: the mask is a
// function of (seed, step, place, token's number in the global batch, feature), made again in backward.
type dropout struct {
	rate  float64
	place uint64
	kit   Kit
}

func newDropout(cfg Config, kit Kit, name string) dropout {
	return dropout{rate: cfg.Dropout, place: hash(name), kit: kit}
}

func (d dropout) on(ctx *Ctx) bool { return ctx.Train && d.rate > 0 }

// inPlace applies the mask to a tensor that nobody else reads.
func (d dropout) inPlace(ctx *Ctx, x *tensor.Tensor) {
	if d.on(ctx) {
		d.apply(ctx, x, x)
	}
}

// backward is dy masked: a new tensor, or another reference to dy.
func (d dropout) backward(ctx *Ctx, dy *tensor.Tensor) *tensor.Tensor {
	if !d.on(ctx) {
		return dy.Retain()
	}
	dx := ctx.Dev.New(tensor.Activations, dy.Shape...)
	d.apply(ctx, dx, dy)
	return dx
}

func (d dropout) apply(ctx *Ctx, y, x *tensor.Tensor) {
	lo, hi := d.kit.Rows(ctx.Batch.Index.Len())
	ctx.Dev.Dropout(y, x, ctx.Batch.Index.Flat(lo, hi), site(ctx, d.place), x.Shape[1], 0, d.rate)
}
