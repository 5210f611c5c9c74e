package tp

import (
	"triax/nn"
	"triax/tensor"
)

// column is matrices cut by outputs: y_i [T Out_i/t] = x W_i^T + b_i with this rank's rows of W_i.
//
//	x ─ gather ─▶ all rows ─▶ y        forward: nothing, or all-gather
//	dx ◀─ reduce ── dy W               backward: all-reduce, or reduce-scatter
//
// All parts share one gather and one reduce.
type column struct {
	kit   Kit
	parts []columnPart
}

type columnPart struct {
	w, b    *nn.Param
	adapter *nn.Adapter
}

// Column cuts the outputs of matrices that share an input.
func (k Kit) Column(name string, in int, parts ...nn.Part) nn.Linear {
	c := &column{kit: k}
	for _, p := range parts {
		full := name
		if p.Name != "" {
			full += "." + p.Name
		}
		unit := max(1, p.Unit)
		cp := columnPart{w: k.cut(full+".weight", []int{p.Out, in}, 0, unit, true, p.Init)}
		if p.Bias {
			cp.b = k.cut(full+".bias", []int{p.Out}, 0, unit, false, nn.Init{})
		}
		cp.adapter = p.NewAdapter(full, in, k.Partial, func(b *nn.Param) *nn.Param {
			cut := k.cut(b.Name, b.Shape, 0, unit, b.Decay, b.Init)
			cut.Adapter = true
			return cut
		})
		c.parts = append(c.parts, cp)
	}
	return c
}

func (c *column) Params() []*nn.Param {
	var ps []*nn.Param
	for _, p := range c.parts {
		ps = append(ps, p.w)
		if p.b != nil {
			ps = append(ps, p.b)
		}
		ps = append(ps, p.adapter.Params()...)
	}
	return ps
}

// columnSaved keeps this rank's rows of x, not the gathered ones, and gathers again for the
// weight gradient (Korthikanti et al. 2022, §4.2.2).
type columnSaved struct {
	x   *tensor.Tensor
	dys []*tensor.Tensor
	low nn.LowRank
}

func (s *columnSaved) Release() {
	s.x.Release()
	s.x = nil
	for _, d := range s.dys {
		d.Release()
	}
	s.dys = nil
	s.low.Release()
}

func (c *column) Forward(ctx *nn.Ctx, x *tensor.Tensor) ([]*tensor.Tensor, nn.Saved, error) {
	full, err := c.kit.gather(ctx, x, tensor.Buffers)
	if err != nil {
		x.Release()
		return nil, nil, err
	}
	defer full.Release()
	ys, s := make([]*tensor.Tensor, len(c.parts)), &columnSaved{x: x}
	for i, p := range c.parts {
		ys[i] = ctx.Dev.New(tensor.Activations, full.Shape[0], p.w.Local[0])
		ctx.Dev.Gemm(ys[i], full, p.w.Data, false, true, 0)
		if p.b != nil {
			ctx.Dev.AddBias(ys[i], p.b.Data)
		}
		s.low.Us = append(s.low.Us, p.adapter.Forward(ctx, ys[i], full))
	}
	if !nn.Learns(c.Params()) {
		s.Release()
	}
	return ys, s, nil
}

func (c *column) BackwardInput(ctx *nn.Ctx, saved nn.Saved, dys []*tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*columnSaved)
	s.dys = dys
	dx := c.partial(ctx, s)
	if !nn.Learns(c.Params()) {
		s.Release()
	}
	return c.kit.reduce(ctx, dx)
}

// Backward is both halves: the weight gradient is computed while the input gradient is summed.
func (c *column) Backward(ctx *nn.Ctx, saved nn.Saved, dys []*tensor.Tensor) (*tensor.Tensor, error) {
	if c.kit.Stream == nil || c.kit.Sequence {
		// Sequence parallelism gathers the input again for the weight gradient: a call of the same group, which has to wait.
		dx, err := c.BackwardInput(ctx, saved, dys)
		if err != nil {
			return nil, err
		}
		return dx, c.BackwardWeight(ctx, saved)
	}
	s := saved.(*columnSaved)
	s.dys = dys
	pending := c.kit.start(ctx, c.partial(ctx, s))
	if err := c.BackwardWeight(ctx, saved); err != nil {
		return nil, err
	}
	return pending.wait(ctx)
}

// partial is this rank's part of the input gradient: the sum of dy_i W_i over its rows of W_i.
func (c *column) partial(ctx *nn.Ctx, s *columnSaved) *tensor.Tensor {
	dx := ctx.Dev.New(tensor.Activations, s.dys[0].Shape[0], c.parts[0].w.Local[1])
	for i, p := range c.parts {
		ctx.Dev.Gemm(dx, s.dys[i], p.w.Data, false, false, min(1, float64(i)))
		s.low.Vs = append(s.low.Vs, p.adapter.Input(ctx, dx, s.dys[i]))
	}
	return dx
}

func (c *column) BackwardWeight(ctx *nn.Ctx, saved nn.Saved) error {
	s := saved.(*columnSaved)
	defer s.Release()
	if !nn.Learns(c.Params()) {
		return nil
	}
	full, err := c.kit.gather(ctx, s.x, tensor.Buffers)
	if err != nil {
		return err
	}
	defer full.Release()
	for i, p := range c.parts {
		if !p.w.Frozen {
			ctx.Dev.Gemm(p.w.Grad, s.dys[i], full, true, false, 1)
		}
		if p.b != nil && !p.b.Frozen {
			ctx.Dev.BiasGrad(p.b.Grad, s.dys[i])
		}
		p.adapter.Weight(ctx, full, s.dys[i], s.low.Us[i], s.low.Vs[i])
	}
	return nil
}
