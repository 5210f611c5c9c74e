package nn

import "triax/tensor"

// mlp is the feed-forward half of a block: down(gelu(up(x))), or down(silu(gate(x)) * up(x)) (Shazeer 2020, §2).
// up and gate are cut by columns and down by rows, so what lies between needs no communication (Shoeybi et al. 2019, §3).
type mlp struct {
	name     string
	gated    bool
	up, down Linear
}

func newMLP(cfg Config, kit Kit, name string) *mlp {
	init := Init{Std: cfg.InitStd}
	m := &mlp{name: name, gated: cfg.Family == Llama}
	bias := !m.gated
	if m.gated {
		m.up = kit.Column(name, cfg.Width, cfg.adapted(Part{Name: "gate", Out: cfg.Hidden, Init: init}, Part{Name: "up", Out: cfg.Hidden, Init: init})...)
	} else {
		m.up = kit.Column(name, cfg.Width, cfg.adapted(Part{Name: "up", Out: cfg.Hidden, Bias: bias, Init: init})...)
	}
	m.down = kit.Row(name, cfg.Hidden, cfg.adapted(Part{Name: "down", Out: cfg.Width, Bias: bias, Init: residualInit(cfg)})[0])
	return m
}

func (m *mlp) Name() string     { return m.name }
func (m *mlp) Params() []*Param { return append(m.up.Params(), m.down.Params()...) }

type mlpSaved struct {
	up, down Saved
	hs       []*tensor.Tensor // before the activation
}

func (s *mlpSaved) Release() {
	s.drop()
	for _, k := range []Saved{s.up, s.down} {
		if k != nil {
			k.Release()
		}
	}
	*s = mlpSaved{}
}

func (s *mlpSaved) drop() {
	for _, h := range s.hs {
		h.Release()
	}
	s.hs = nil
}

// Forward: x [T' D] → y [T' D].
func (m *mlp) Forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	s := &mlpSaved{}
	var err error
	if s.hs, s.up, err = m.up.Forward(ctx, x); err != nil {
		return nil, nil, err
	}
	a := ctx.Dev.New(tensor.Activations, s.hs[0].Shape...)
	if m.gated {
		ctx.Dev.SwiGLU(a, s.hs[0], s.hs[1])
	} else {
		ctx.Dev.Gelu(a, s.hs[0])
	}
	ys, keep, err := m.down.Forward(ctx, a)
	if err != nil {
		s.Release()
		return nil, nil, err
	}
	s.down = keep
	return ys[0], s, nil
}

func (m *mlp) BackwardInput(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*mlpSaved)
	da, err := m.down.BackwardInput(ctx, s.down, []*tensor.Tensor{dy})
	if err != nil {
		return nil, err
	}
	return m.up.BackwardInput(ctx, s.up, m.activationGrad(ctx, s, da))
}

// Backward is both halves.
func (m *mlp) Backward(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*mlpSaved)
	defer s.drop()
	down, up := s.down, s.up
	s.down, s.up = nil, nil
	da, err := backwardLinear(ctx, m.down, down, []*tensor.Tensor{dy})
	if err != nil {
		up.Release()
		return nil, err
	}
	return backwardLinear(ctx, m.up, up, m.activationGrad(ctx, s, da))
}

// activationGrad is the gradients of what is before the activation. It takes over da.
func (m *mlp) activationGrad(ctx *Ctx, s *mlpSaved, da *tensor.Tensor) []*tensor.Tensor {
	var dhs []*tensor.Tensor
	if m.gated {
		dgate, dup := ctx.Dev.New(tensor.Activations, da.Shape...), ctx.Dev.New(tensor.Activations, da.Shape...)
		ctx.Dev.SwiGLUGrad(dgate, dup, s.hs[0], s.hs[1], da)
		da.Release()
		dhs = []*tensor.Tensor{dgate, dup}
	} else {
		ctx.Dev.GeluGrad(da, s.hs[0], da)
		dhs = []*tensor.Tensor{da}
	}
	s.drop()
	return dhs
}

func (m *mlp) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*mlpSaved)
	down, up := s.down, s.up
	s.down, s.up = nil, nil
	if err := m.down.BackwardWeight(ctx, down); err != nil {
		up.Release()
		return err
	}
	return m.up.BackwardWeight(ctx, up)
}
