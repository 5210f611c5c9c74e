package nn

import (
	"math"

	"triax/tensor"
)

// moe is a mixture of experts in place of the feed-forward layer: a router sends each token to its top k of E experts and adds up
// their outputs, weighed by its probabilities (Shazeer et al. 2017, §2; Fedus et al. 2022, §2).
//
//	x ─ router ─ top k ─┬─ expert 3: down(act(up(x))) ─ gate ─┬─ + ─▶ y
//	                    └─ expert 7: ...              ─ gate ─┘
//
// It works token by token, so it runs on whatever token rows the rank has; experts are whole, and shared out over the expert axis.
type moe struct {
	cfg    Config
	name   string
	kit    Kit
	ranks  Experts
	router *Param
	ups    []*Param // up, or gate and up
	down   *Param
}

// newFeedForward is the second half of a block.
func newFeedForward(cfg Config, kit Kit, block string) Layer {
	if cfg.Experts == 0 {
		return newMLP(cfg, kit, block+".mlp")
	}
	m := &moe{cfg: cfg, name: block + ".moe", kit: kit, ranks: kit.Experts()}
	init := Init{Std: cfg.InitStd}
	m.router = kit.Replicated(&Param{Name: m.name + ".router.weight", Shape: []int{cfg.Experts, cfg.Width}, Init: init, Decay: true})
	names := []string{"up"}
	if cfg.Family == Llama {
		names = []string{"gate", "up"}
	}
	for _, n := range names {
		m.ups = append(m.ups, m.ranks.Param(&Param{
			Name: m.name + "." + n + ".weight", Shape: []int{cfg.Experts, cfg.Hidden, cfg.Width}, Init: init, Decay: true,
		}))
	}
	m.down = m.ranks.Param(&Param{
		Name: m.name + ".down.weight", Shape: []int{cfg.Experts, cfg.Width, cfg.Hidden}, Init: residualInit(cfg), Decay: true,
	})
	return m
}

func (m *moe) Name() string { return m.name }

func (m *moe) Params() []*Param {
	return append(append([]*Param{m.router}, m.ups...), m.down)
}

type moeSaved struct {
	r       *route
	d       *dispatch
	x       *tensor.Tensor   // [T' D]
	xs      *tensor.Tensor   // [rows D] what this rank's experts got
	hs      []*tensor.Tensor // before the activation
	a       *tensor.Tensor   // after it
	slots   *tensor.Tensor   // [slots D] the experts' outputs, before the gates
	gates   *tensor.Tensor
	dy      *tensor.Tensor   // gradient of the experts' outputs
	dhs     []*tensor.Tensor // of what is before the activation
	dlogits *tensor.Tensor
}

func (s *moeSaved) Release() {
	if s.d != nil {
		s.d.Release()
	}
	for _, t := range append(append([]*tensor.Tensor{s.x, s.xs, s.a, s.slots, s.gates, s.dy, s.dlogits}, s.hs...), s.dhs...) {
		t.Release()
	}
	*s = moeSaved{}
}

// of is expert e's matrix in a stacked parameter.
func of(stack *tensor.Tensor, e int) *tensor.Tensor {
	n := stack.Shape[1] * stack.Shape[2]
	return stack.Part(e*n, (e+1)*n, stack.Shape[1], stack.Shape[2])
}

func (m *moe) rowSample(ctx *Ctx) []int32 {
	lo, hi := m.kit.Rows(len(ctx.Batch.RowSample))
	return ctx.Batch.RowSample[lo:hi]
}

// Forward: x [T' D] → y [T' D].
func (m *moe) Forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	s := &moeSaved{x: x}
	y, err := m.forward(ctx, s)
	if err != nil {
		s.Release()
		return nil, nil, err
	}
	return y, s, nil
}

func (m *moe) forward(ctx *Ctx, s *moeSaved) (*tensor.Tensor, error) {
	if err := m.route(ctx, s); err != nil {
		return nil, err
	}
	dev := ctx.Dev
	var err error
	if s.d, err = newDispatch(ctx, m.ranks, s.r); err != nil {
		return nil, err
	}
	if s.xs, err = s.d.there(ctx, s.x, s.d.sendToken); err != nil {
		return nil, err
	}
	for _, up := range m.ups {
		h := dev.New(tensor.Activations, s.d.rows, m.cfg.Hidden)
		s.hs = append(s.hs, h)
		s.d.each(func(e, lo, hi int) { dev.Gemm(h.Rows(lo, hi), s.xs.Rows(lo, hi), of(up.Data, e), false, true, 0) })
	}
	s.a = dev.New(tensor.Activations, s.d.rows, m.cfg.Hidden)
	if len(s.hs) == 2 {
		dev.SwiGLU(s.a, s.hs[0], s.hs[1])
	} else {
		dev.Gelu(s.a, s.hs[0])
	}
	out := dev.New(tensor.Activations, s.d.rows, m.cfg.Width)
	defer out.Release()
	s.d.each(func(e, lo, hi int) { dev.Gemm(out.Rows(lo, hi), s.a.Rows(lo, hi), of(m.down.Data, e), false, true, 0) })
	if s.slots, err = s.d.back(ctx, out); err != nil {
		return nil, err
	}
	s.gates = tensor.NewAccum(dev, tensor.Activations, s.d.slots)
	dev.Upload(s.gates, s.r.gate)
	y := dev.New(tensor.Activations, s.x.Shape...)
	dev.Zero(y)
	weighed := dev.New(tensor.Workspace, s.slots.Shape...)
	defer weighed.Release()
	dev.ScaleRows(weighed, s.slots, s.gates)
	dev.EmbedGrad(y, weighed, s.d.tokens, 0)
	return y, nil
}

// route decides on the host: E numbers a token.
func (m *moe) route(ctx *Ctx, s *moeSaved) error {
	logits := tensor.NewAccum(ctx.Dev, tensor.Workspace, s.x.Shape[0], m.cfg.Experts)
	defer logits.Release()
	ctx.Dev.Gemm(logits, s.x, m.router.Data, false, true, 0)
	host := make([]float64, logits.Len())
	ctx.Dev.Download(host, logits)
	if ctx.Even {
		s.r = evenRoute(s.x.Shape[0], m.cfg.Experts, m.cfg.TopK)
	} else {
		s.r = newRoute(host, m.cfg.Experts, m.cfg.TopK)
	}
	if m.cfg.AuxLoss > 0 && ctx.Train {
		loss, err := s.r.balance(ctx, m.ranks, m.cfg, m.rowSample(ctx))
		if err != nil {
			return err
		}
		if ctx.AddLoss != nil && m.ranks.Owner() {
			ctx.AddLoss(loss)
		}
	}
	if f := m.cfg.CapacityFactor; f > 0 {
		capacity := int(math.Ceil(f * float64(ctx.Batch.SampleSeq*m.cfg.TopK) / float64(m.cfg.Experts)))
		s.r.limit(m.rowSample(ctx), ctx.Batch.Samples, capacity)
	}
	return nil
}

func (m *moe) BackwardInput(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*moeSaved)
	dev := ctx.Dev
	defer dy.Release()
	dslots := dev.New(tensor.Activations, s.slots.Shape...)
	defer dslots.Release()
	dev.Embed(dslots, dy, s.d.tokens, 0)
	dgate := m.gateGrad(ctx, s, dslots)
	dev.ScaleRows(dslots, dslots, s.gates)
	var err error
	if s.dy, err = s.d.there(ctx, dslots, s.d.sendSlot); err != nil {
		return nil, err
	}
	dxs := m.expertsInput(ctx, s)
	defer dxs.Release()
	back, err := s.d.back(ctx, dxs)
	if err != nil {
		return nil, err
	}
	defer back.Release()
	dx := dev.New(tensor.Activations, s.x.Shape...)
	dev.Zero(dx)
	dev.EmbedGrad(dx, back, s.d.tokens, 0)
	s.dlogits = dev.New(tensor.Activations, s.x.Shape[0], m.cfg.Experts)
	if !ctx.Even {
		dev.Upload(s.dlogits, s.r.backward(dgate, m.cfg.TopK, m.rowSample(ctx)))
	}
	dev.Gemm(dx, s.dlogits, m.router.Data, false, false, 1)
	return dx, nil
}

// gateGrad is dy . output of every slot, on the host.
func (m *moe) gateGrad(ctx *Ctx, s *moeSaved, dslots *tensor.Tensor) []float64 {
	dots := tensor.NewAccum(ctx.Dev, tensor.Workspace, s.d.slots)
	defer dots.Release()
	ctx.Dev.DotRows(dots, s.slots, dslots)
	out := make([]float64, s.d.slots)
	ctx.Dev.Download(out, dots)
	s.slots.Release()
	s.slots = nil
	return out
}

// expertsInput goes back through this rank's experts: gradients of their inputs, with those before the activation kept.
func (m *moe) expertsInput(ctx *Ctx, s *moeSaved) *tensor.Tensor {
	dev := ctx.Dev
	da := dev.New(tensor.Activations, s.a.Shape...)
	s.d.each(func(e, lo, hi int) { dev.Gemm(da.Rows(lo, hi), s.dy.Rows(lo, hi), of(m.down.Data, e), false, false, 0) })
	if len(s.hs) == 2 {
		dgate, dup := dev.New(tensor.Activations, da.Shape...), dev.New(tensor.Activations, da.Shape...)
		dev.SwiGLUGrad(dgate, dup, s.hs[0], s.hs[1], da)
		da.Release()
		s.dhs = []*tensor.Tensor{dgate, dup}
	} else {
		dev.GeluGrad(da, s.hs[0], da)
		s.dhs = []*tensor.Tensor{da}
	}
	for _, h := range s.hs {
		h.Release()
	}
	s.hs = nil
	dx := dev.New(tensor.Activations, s.d.rows, m.cfg.Width)
	s.d.each(func(e, lo, hi int) {
		for i, up := range m.ups {
			dev.Gemm(dx.Rows(lo, hi), s.dhs[i].Rows(lo, hi), of(up.Data, e), false, false, min(1, float64(i)))
		}
	})
	return dx
}

func (m *moe) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*moeSaved)
	defer s.Release()
	if m.router.Frozen { // and so are the experts
		return nil
	}
	ctx.Dev.Gemm(m.router.Grad, s.dlogits, s.x, true, false, 1)
	s.d.each(func(e, lo, hi int) {
		ctx.Dev.Gemm(of(m.down.Grad, e), s.dy.Rows(lo, hi), s.a.Rows(lo, hi), true, false, 1)
		for i, up := range m.ups {
			ctx.Dev.Gemm(of(up.Grad, e), s.dhs[i].Rows(lo, hi), s.xs.Rows(lo, hi), true, false, 1)
		}
	})
	return nil
}
