package tp

import (
	"triax/nn"
	"triax/tensor"
)

// row is a matrix cut by inputs: each rank multiplies its features, and the partial products are summed.
//
//	x [T In/t] ─▶ x W^T ── reduce ─▶ + b ─▶ y [T' Out]   forward: all-reduce, or reduce-scatter
//	dx ◀─ dy W ◀─ gather ─ dy                            backward: nothing, or all-gather
//
// The bias is added after the sum, once.
type row struct {
	kit     Kit
	w, b    *nn.Param
	adapter *nn.Adapter
}

// Row cuts the inputs of a matrix.
func (k Kit) Row(name string, in int, out nn.Part) nn.Linear {
	if out.Name != "" {
		name += "." + out.Name
	}
	r := &row{kit: k, w: k.cut(name+".weight", []int{out.Out, in}, 1, max(1, out.Unit), true, out.Init)}
	if out.Bias {
		r.b = k.Replicated(&nn.Param{Name: name + ".bias", Shape: []int{out.Out}})
	}
	r.adapter = out.NewAdapter(name, in, func(a *nn.Param) *nn.Param {
		cut := k.cut(a.Name, a.Shape, 1, max(1, out.Unit), a.Decay, a.Init)
		cut.Adapter = true
		return cut
	}, k.Partial)
	return r
}

func (r *row) Params() []*nn.Param {
	ps := []*nn.Param{r.w}
	if r.b != nil {
		ps = append(ps, r.b)
	}
	return append(ps, r.adapter.Params()...)
}

// rowSaved keeps x, and after BackwardInput the gradient: dy as it came, for the bias, and with all its rows.
type rowSaved struct {
	x, dy, full *tensor.Tensor
	u, v        *tensor.Tensor // of the adapter
}

func (s *rowSaved) Release() {
	s.x.Release()
	s.dy.Release()
	s.full.Release()
	s.u.Release()
	s.v.Release()
	*s = rowSaved{}
}

func (r *row) Forward(ctx *nn.Ctx, x *tensor.Tensor) ([]*tensor.Tensor, nn.Saved, error) {
	y := ctx.Dev.New(tensor.Activations, x.Shape[0], r.w.Local[0])
	ctx.Dev.Gemm(y, x, r.w.Data, false, true, 0)
	s := &rowSaved{x: x, u: r.adapter.Forward(ctx, y, x)}
	y, err := r.kit.reduce(ctx, y)
	if err != nil {
		s.Release()
		return nil, nil, err
	}
	if r.b != nil {
		ctx.Dev.AddBias(y, r.b.Data)
	}
	if !nn.Learns(r.Params()) {
		s.Release()
	}
	return []*tensor.Tensor{y}, s, nil
}

func (r *row) BackwardInput(ctx *nn.Ctx, saved nn.Saved, dys []*tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*rowSaved)
	s.dy = dys[0]
	var err error
	if s.full, err = r.kit.gather(ctx, s.dy, tensor.Activations); err != nil {
		return nil, err
	}
	dx := ctx.Dev.New(tensor.Activations, s.full.Shape[0], r.w.Local[1])
	ctx.Dev.Gemm(dx, s.full, r.w.Data, false, false, 0)
	s.v = r.adapter.Input(ctx, dx, s.full)
	if !nn.Learns(r.Params()) {
		s.Release()
	}
	return dx, nil
}

func (r *row) BackwardWeight(ctx *nn.Ctx, saved nn.Saved) error {
	s := saved.(*rowSaved)
	defer s.Release()
	if !nn.Learns(r.Params()) {
		return nil
	}
	if !r.w.Frozen {
		ctx.Dev.Gemm(r.w.Grad, s.full, s.x, true, false, 1)
	}
	if r.b != nil && !r.b.Frozen {
		ctx.Dev.BiasGrad(r.b.Grad, s.dy)
	}
	r.adapter.Weight(ctx, s.x, s.full, s.u, s.v)
	return nil
}
