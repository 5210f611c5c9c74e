package nn

import "triax/tensor"

// attention is causal self-attention: a column-cut matrix makes queries, keys and values, heads work alone, and a row-cut
// matrix mixes them (Vaswani et al. 2017, §3.2.2; Shoeybi et al. 2019, §3).
//
//	x ─▶ q k v ─▶ (norm) ─▶ rope ─▶ softmax(q k^T / sqrt(hd)) v ─▶ out ─▶ y
type attention struct {
	cfg   Config
	name  string
	kit   Kit
	core  Core
	qkv   Linear
	qn    *headNorm // nil without
	kn    *headNorm
	rot   *Rotary // nil where positions are learned
	out   Linear
	place uint64 // of its dropout stream
}

func newAttention(cfg Config, kit Kit, name string) *attention {
	hd, bias, init := cfg.HeadDim, cfg.Family == GPT2 || cfg.QKVBias, Init{Std: cfg.InitStd}
	a := &attention{
		cfg: cfg, name: name, kit: kit, core: kit.Core(), place: hash(name + ".weights"),
		qkv: kit.Column(name, cfg.Width, cfg.adapted(
			Part{Name: "q", Out: cfg.Heads * hd, Unit: hd, Bias: bias, Init: init},
			Part{Name: "k", Out: cfg.KVHeads * hd, Unit: hd, Bias: bias, Init: init},
			Part{Name: "v", Out: cfg.KVHeads * hd, Unit: hd, Bias: bias, Init: init})...),
		out: kit.Row(name, cfg.Heads*hd, cfg.adapted(Part{Name: "out", Out: cfg.Width, Unit: hd, Bias: cfg.Family == GPT2, Init: residualInit(cfg)})[0]),
	}
	if cfg.Family == Llama {
		a.rot = NewRotary(cfg)
	}
	if cfg.QKNorm {
		a.qn, a.kn = newHeadNorm(cfg, kit, name+".q_norm"), newHeadNorm(cfg, kit, name+".k_norm")
	}
	return a
}

func (a *attention) Name() string { return a.name }

func (a *attention) Params() []*Param {
	ps := append(a.qkv.Params(), a.qn.params()...)
	ps = append(ps, a.kn.params()...)
	return append(ps, a.out.Params()...)
}

type attentionSaved struct {
	qkv, out        Saved
	qn, kn          Saved // of the norms of heads, where there are any
	q, k, v, o, lse *tensor.Tensor
}

func (s *attentionSaved) Release() {
	s.core()
	for _, k := range []Saved{s.qkv, s.out, s.qn, s.kn} {
		if k != nil {
			k.Release()
		}
	}
	*s = attentionSaved{}
}

// core drops what only the heads' own backward needs.
func (s *attentionSaved) core() {
	for _, t := range []*tensor.Tensor{s.q, s.k, s.v, s.o, s.lse} {
		t.Release()
	}
	s.q, s.k, s.v, s.o, s.lse = nil, nil, nil, nil, nil
}

// spec describes the heads of this rank to the device.
func (a *attention) spec(ctx *Ctx) tensor.Attention {
	b := ctx.Batch
	heads, first := a.kit.Heads(a.cfg.Heads)
	kv, _ := a.kit.Heads(a.cfg.KVHeads)
	at := tensor.Attention{
		Samples: b.Samples, Seq: b.Seq, Heads: heads, KVHeads: kv, HeadDim: a.cfg.HeadDim, Segments: b.Segments,
		HeadsTotal: a.cfg.Heads, HeadOffset: first, SampleIndex: b.SampleIndex,
	}
	if ctx.Train && a.cfg.Dropout > 0 {
		at.Rate, at.Seed = a.cfg.Dropout, site(ctx, a.place)
	}
	return at
}

// Forward: x [T' D] → y [T' D].
func (a *attention) Forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	s := &attentionSaved{}
	fail := func(err error) (*tensor.Tensor, Saved, error) { s.Release(); return nil, nil, err }
	qkv, keep, err := a.qkv.Forward(ctx, x)
	if err != nil {
		return fail(err)
	}
	s.qkv, s.v = keep, qkv[2]
	at := a.spec(ctx)
	if s.q, s.qn, err = a.qn.forward(ctx, qkv[0]); err == nil {
		s.k, s.kn, err = a.kn.forward(ctx, qkv[1])
	}
	if err != nil {
		return fail(err)
	}
	a.rot.Turn(ctx, s.q, at.Heads, false)
	a.rot.Turn(ctx, s.k, at.KVHeads, false)
	s.o = ctx.Dev.New(tensor.Activations, s.q.Shape...)
	s.lse = tensor.NewAccum(ctx.Dev, tensor.Activations, at.Samples, at.Heads, at.Seq)
	if err := a.attend(ctx, s, at); err != nil {
		return fail(err)
	}
	ys, keep, err := a.out.Forward(ctx, s.o.Retain())
	if err != nil {
		return fail(err)
	}
	s.out = keep
	return ys[0], s, nil
}

// attend fills s.o and s.lse; of one more token after those in a cache s.o only.
func (a *attention) attend(ctx *Ctx, s *attentionSaved, at tensor.Attention) error {
	if c := ctx.Cache; c != nil {
		l := c.layer(ctx.Dev, a.name, at)
		c.add(ctx.Dev, l, s.k, s.v, at)
		if c.Len > 0 {
			c.attend(ctx.Dev, l, s.o, s.q, at)
			return nil
		}
	}
	return a.core.Forward(ctx, s.o, s.lse, s.q, s.k, s.v, at)
}

func (a *attention) BackwardInput(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*attentionSaved)
	do, err := a.out.BackwardInput(ctx, s.out, []*tensor.Tensor{dy})
	if err != nil {
		return nil, err
	}
	dqkv, err := a.coreGrad(ctx, s, do)
	if err != nil {
		return nil, err
	}
	return a.qkv.BackwardInput(ctx, s.qkv, dqkv)
}

// Backward is both halves.
func (a *attention) Backward(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*attentionSaved)
	defer s.Release()
	out := s.out
	s.out = nil
	do, err := backwardLinear(ctx, a.out, out, []*tensor.Tensor{dy})
	if err != nil {
		return nil, err
	}
	dqkv, err := a.coreGrad(ctx, s, do)
	if err != nil {
		return nil, err
	}
	if err := a.normWeights(ctx, s); err != nil {
		return nil, err
	}
	qkv := s.qkv
	s.qkv = nil
	return backwardLinear(ctx, a.qkv, qkv, dqkv)
}

// coreGrad is the gradients of queries, keys and values. It takes over do.
func (a *attention) coreGrad(ctx *Ctx, s *attentionSaved, do *tensor.Tensor) ([]*tensor.Tensor, error) {
	at := a.spec(ctx)
	dq, dk, dv := ctx.Dev.New(tensor.Activations, s.q.Shape...), ctx.Dev.New(tensor.Activations, s.k.Shape...), ctx.Dev.New(tensor.Activations, s.v.Shape...)
	err := a.core.Backward(ctx, dq, dk, dv, do, s.o, s.lse, s.q, s.k, s.v, at)
	do.Release()
	if err != nil {
		return nil, err
	}
	s.core()
	a.rot.Turn(ctx, dq, at.Heads, true)
	a.rot.Turn(ctx, dk, at.KVHeads, true)
	if dq, err = a.qn.backwardInput(ctx, s.qn, dq); err != nil {
		return nil, err
	}
	if dk, err = a.kn.backwardInput(ctx, s.kn, dk); err != nil {
		return nil, err
	}
	return []*tensor.Tensor{dq, dk, dv}, nil
}

// normWeights is the weights' half of the norms of heads.
func (a *attention) normWeights(ctx *Ctx, s *attentionSaved) error {
	qn, kn := s.qn, s.kn
	s.qn, s.kn = nil, nil
	if err := a.qn.backwardWeight(ctx, qn); err != nil {
		return err
	}
	return a.kn.backwardWeight(ctx, kn)
}

func (a *attention) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*attentionSaved)
	out, qkv := s.out, s.qkv
	s.out, s.qkv = nil, nil
	if err := a.out.BackwardWeight(ctx, out); err != nil {
		qkv.Release()
		return err
	}
	if err := a.normWeights(ctx, s); err != nil {
		qkv.Release()
		return err
	}
	return a.qkv.BackwardWeight(ctx, qkv)
}
