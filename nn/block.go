package nn

import (
	"fmt"

	"triax/tensor"
)

// block is one transformer layer in the pre-norm form: two branches around a residual stream.
//
//	x ─┬─ norm1 ─ attention ─ dropout ─ + ─┬─ norm2 ─ mlp ─ dropout ─ + ─▶ y
//	   └────────────────────────────────┘  └─────────────────────────┘
type block struct {
	name             string
	n1, attn, n2, ml Layer
	d1, d2           dropout
}

func newBlock(cfg Config, kit Kit, i int) Layer {
	name := fmt.Sprintf("blocks.%d", i)
	b := &block{
		name: name,
		n1:   newNorm(cfg, kit, name+".norm1"), attn: newAttention(cfg, kit, name+".attn"), d1: newDropout(cfg, kit, name+".attn"),
		n2: newNorm(cfg, kit, name+".norm2"), ml: newFeedForward(cfg, kit, name), d2: newDropout(cfg, kit, name+".mlp"),
	}
	if cfg.RecomputeLayers > 0 && i >= cfg.RecomputeLayers {
		return b
	}
	switch cfg.Recompute {
	case RecomputeSelective:
		b.attn = &recompute{b.attn}
	case RecomputeFull:
		return &recompute{b}
	}
	return b
}

func (b *block) Name() string { return b.name }

func (b *block) Params() []*Param {
	var ps []*Param
	for _, l := range []Layer{b.n1, b.attn, b.n2, b.ml} {
		ps = append(ps, l.Params()...)
	}
	return ps
}

// blockSaved is what the four parts keep, in their order.
type blockSaved [4]Saved

func (s *blockSaved) Release() {
	for i, k := range s {
		if k != nil {
			k.Release()
		}
		s[i] = nil
	}
}

// Forward: x [T' D] → y [T' D].
func (b *block) Forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	s := &blockSaved{}
	h, err := b.branch(ctx, x, b.n1, b.attn, b.d1, s[:2])
	if err == nil {
		h, err = b.branch(ctx, h, b.n2, b.ml, b.d2, s[2:])
	}
	if err != nil {
		s.Release()
		return nil, nil, err
	}
	return h, s, nil
}

// branch is x + dropout(layer(norm(x))). It takes over x.
func (b *block) branch(ctx *Ctx, x *tensor.Tensor, n, l Layer, d dropout, saved []Saved) (y *tensor.Tensor, err error) {
	defer x.Release()
	if y, saved[0], err = n.Forward(ctx, x.Retain()); err != nil {
		return nil, err
	}
	if y, saved[1], err = l.Forward(ctx, y); err != nil {
		return nil, err
	}
	d.inPlace(ctx, y)
	ctx.Dev.Add(y, x)
	return y, nil
}

func (b *block) BackwardInput(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*blockSaved)
	dh, err := b.branchInput(ctx, dy, b.n2, b.ml, b.d2, s[2:])
	if err != nil {
		return nil, err
	}
	return b.branchInput(ctx, dh, b.n1, b.attn, b.d1, s[:2])
}

func (b *block) branchInput(ctx *Ctx, dy *tensor.Tensor, n, l Layer, d dropout, saved []Saved) (*tensor.Tensor, error) {
	defer dy.Release()
	dx, err := l.BackwardInput(ctx, saved[1], d.backward(ctx, dy))
	if err != nil {
		return nil, err
	}
	if dx, err = n.BackwardInput(ctx, saved[0], dx); err != nil {
		return nil, err
	}
	ctx.Dev.Add(dx, dy)
	return dx, nil
}

// Backward is both halves, branch by branch, so that what a weight gradient needs is dropped early.
func (b *block) Backward(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*blockSaved)
	defer s.Release()
	dh, err := b.branchBackward(ctx, dy, b.n2, b.ml, b.d2, s[2:])
	if err != nil {
		return nil, err
	}
	return b.branchBackward(ctx, dh, b.n1, b.attn, b.d1, s[:2])
}

func (b *block) branchBackward(ctx *Ctx, dy *tensor.Tensor, n, l Layer, d dropout, saved []Saved) (*tensor.Tensor, error) {
	defer dy.Release()
	inner := saved[1]
	saved[1] = nil
	dx, err := Backward(ctx, l, inner, d.backward(ctx, dy))
	if err != nil {
		return nil, err
	}
	norm := saved[0]
	saved[0] = nil
	if dx, err = Backward(ctx, n, norm, dx); err != nil {
		return nil, err
	}
	ctx.Dev.Add(dx, dy)
	return dx, nil
}

// BackwardWeight goes through the parts in the order of the backward pass.
func (b *block) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*blockSaved)
	defer s.Release()
	layers := [4]Layer{b.n1, b.attn, b.n2, b.ml}
	for i := 3; i >= 0; i-- {
		k := s[i]
		s[i] = nil
		if err := layers[i].BackwardWeight(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
