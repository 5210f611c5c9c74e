package nn

import "triax/tensor"

// linear is matrices that share an input: y_i = x W_i^T + b_i.
type linear struct{ parts []linearPart }

type linearPart struct {
	w, b    *Param
	adapter *Adapter
}

func newLinear(name string, in int, parts ...Part) *linear {
	l := &linear{}
	for _, p := range parts {
		full := name
		if p.Name != "" {
			full += "." + p.Name
		}
		lp := linearPart{w: whole(&Param{Name: full + ".weight", Shape: []int{p.Out, in}, Decay: true, Init: p.Init})}
		if p.Bias {
			lp.b = whole(&Param{Name: full + ".bias", Shape: []int{p.Out}})
		}
		lp.adapter = p.NewAdapter(full, in, whole, whole)
		l.parts = append(l.parts, lp)
	}
	return l
}

func (l *linear) Params() []*Param {
	var ps []*Param
	for _, p := range l.parts {
		ps = append(ps, p.w)
		if p.b != nil {
			ps = append(ps, p.b)
		}
		ps = append(ps, p.adapter.Params()...)
	}
	return ps
}

// Learns says whether any of these parameters takes a gradient. Where none does, a layer keeps nothing for its weight gradient.
func Learns(ps []*Param) bool {
	for _, p := range ps {
		if !p.Frozen {
			return true
		}
	}
	return false
}

type linearSaved struct {
	x   *tensor.Tensor
	dys []*tensor.Tensor
	low LowRank
}

func (s *linearSaved) Release() {
	s.x.Release()
	for _, d := range s.dys {
		d.Release()
	}
	s.low.Release()
	*s = linearSaved{}
}

// Forward: x [T In] → ys[i] [T Out_i].
func (l *linear) Forward(ctx *Ctx, x *tensor.Tensor) ([]*tensor.Tensor, Saved, error) {
	ys, s := make([]*tensor.Tensor, len(l.parts)), &linearSaved{x: x}
	for i, p := range l.parts {
		ys[i] = ctx.Dev.New(tensor.Activations, x.Shape[0], p.w.Local[0])
		ctx.Dev.Gemm(ys[i], x, p.w.Data, false, true, 0)
		if p.b != nil {
			ctx.Dev.AddBias(ys[i], p.b.Data)
		}
		s.low.Us = append(s.low.Us, p.adapter.Forward(ctx, ys[i], x))
	}
	if !Learns(l.Params()) {
		s.Release()
	}
	return ys, s, nil
}

// BackwardInput: dx = sum of dy_i W_i.
func (l *linear) BackwardInput(ctx *Ctx, saved Saved, dys []*tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*linearSaved)
	s.dys = dys
	dx := ctx.Dev.New(tensor.Activations, dys[0].Shape[0], l.parts[0].w.Local[1])
	for i, p := range l.parts {
		ctx.Dev.Gemm(dx, dys[i], p.w.Data, false, false, min(1, float64(i)))
		s.low.Vs = append(s.low.Vs, p.adapter.Input(ctx, dx, dys[i]))
	}
	if !Learns(l.Params()) {
		s.Release()
	}
	return dx, nil
}

// BackwardWeight: dW_i += dy_i^T x, db_i += column sums of dy_i.
func (l *linear) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*linearSaved)
	defer s.Release()
	if !Learns(l.Params()) {
		return nil
	}
	for i, p := range l.parts {
		if !p.w.Frozen {
			ctx.Dev.Gemm(p.w.Grad, s.dys[i], s.x, true, false, 1)
		}
		if p.b != nil && !p.b.Frozen {
			ctx.Dev.BiasGrad(p.b.Grad, s.dys[i])
		}
		p.adapter.Weight(ctx, s.x, s.dys[i], s.low.Us[i], s.low.Vs[i])
	}
	return nil
}
