package nn

import "triax/tensor"

// norm is LayerNorm (Ba et al. 2016, §3), or RMSNorm (Zhang & Sennrich 2019, §3) when it has no bias.
// Token rows are independent, so a rank that holds some of the rows needs nothing from others.
type norm struct {
	name string
	w, b *Param
	eps  float64
}

func newNorm(cfg Config, kit Kit, name string) *norm {
	n := &norm{name: name, eps: cfg.Eps}
	n.w = kit.Replicated(&Param{Name: name + ".weight", Shape: []int{cfg.Width}, Init: Init{Mean: 1}})
	if cfg.Family == GPT2 {
		n.b = kit.Replicated(&Param{Name: name + ".bias", Shape: []int{cfg.Width}})
	}
	return n
}

func (n *norm) Name() string { return n.name }

func (n *norm) Params() []*Param {
	if n.b == nil {
		return []*Param{n.w}
	}
	return []*Param{n.w, n.b}
}

type normSaved struct{ x, mean, rstd, dy *tensor.Tensor }

func (s *normSaved) Release() {
	for _, t := range []*tensor.Tensor{s.x, s.mean, s.rstd, s.dy} {
		t.Release()
	}
	*s = normSaved{}
}

// Forward: x [T' D] → y [T' D].
func (n *norm) Forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	dev, T := ctx.Dev, x.Shape[0]
	y := dev.New(tensor.Activations, x.Shape...)
	s := &normSaved{x: x, rstd: tensor.NewAccum(dev, tensor.Activations, T)}
	if n.b == nil {
		dev.RMSNorm(y, s.rstd, x, n.w.Data, n.eps)
		return y, s, nil
	}
	s.mean = tensor.NewAccum(dev, tensor.Activations, T)
	dev.LayerNorm(y, s.mean, s.rstd, x, n.w.Data, n.b.Data, n.eps)
	return y, s, nil
}

func (n *norm) BackwardInput(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*normSaved)
	dx := ctx.Dev.New(tensor.Activations, dy.Shape...)
	if n.b == nil {
		ctx.Dev.RMSNormInput(dx, dy, s.x, n.w.Data, s.rstd)
	} else {
		ctx.Dev.LayerNormInput(dx, dy, s.x, n.w.Data, s.mean, s.rstd)
	}
	if s.dy = dy; n.w.Frozen {
		s.Release()
	}
	return dx, nil
}

func (n *norm) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*normSaved)
	defer s.Release()
	if n.w.Frozen {
		return nil
	}
	if n.b == nil {
		ctx.Dev.RMSNormWeight(n.w.Grad, s.dy, s.x, s.rstd)
	} else {
		ctx.Dev.LayerNormWeight(n.w.Grad, n.b.Grad, s.dy, s.x, s.mean, s.rstd)
	}
	return nil
}
