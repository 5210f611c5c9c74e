package nn

import "triax/tensor"

// input is the first layer: token embedding, learned positions where the family has them, dropout.
type input struct {
	tokens    Layer
	positions *Param // [S D], nil for rotary families
	kit       Kit
	drop      dropout
}

func newInput(cfg Config, kit Kit, table *Param) *input {
	in := &input{tokens: kit.Embedding(table), kit: kit, drop: newDropout(cfg, kit, "embedding")}
	if cfg.Family == GPT2 {
		in.positions = kit.Replicated(&Param{
			Name: "positions.weight", Shape: []int{cfg.Positions, cfg.Width}, Init: Init{Std: cfg.InitStd}, Decay: true,
		})
	}
	return in
}

func (in *input) Name() string { return "embedding" }

func (in *input) Params() []*Param {
	ps := in.tokens.Params()
	if in.positions != nil {
		ps = append(ps, in.positions)
	}
	return ps
}

type inputSaved struct {
	tokens Saved
	dy     *tensor.Tensor
}

func (s *inputSaved) Release() {
	if s.tokens != nil {
		s.tokens.Release()
	}
	s.dy.Release()
	*s = inputSaved{}
}

// at is the positions of the token rows held here.
func (in *input) at(ctx *Ctx) *tensor.Tensor {
	lo, hi := in.kit.Rows(ctx.Batch.Positions.Len())
	return ctx.Batch.Positions.Flat(lo, hi)
}

// Forward: the batch's tokens → [T' D].
func (in *input) Forward(ctx *Ctx, _ *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	y, keep, err := in.tokens.Forward(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	if in.positions != nil {
		p := ctx.Dev.New(tensor.Workspace, y.Shape...)
		ctx.Dev.Embed(p, in.positions.Data, in.at(ctx), 0)
		ctx.Dev.Add(y, p)
		p.Release()
	}
	in.drop.inPlace(ctx, y)
	return y, &inputSaved{tokens: keep}, nil
}

func (in *input) BackwardInput(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*inputSaved)
	masked := in.drop.backward(ctx, dy)
	dy.Release()
	if in.positions != nil {
		s.dy = masked.Retain()
	}
	return in.tokens.BackwardInput(ctx, s.tokens, masked)
}

func (in *input) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*inputSaved)
	defer s.Release()
	if in.positions != nil && !in.positions.Frozen {
		ctx.Dev.EmbedGrad(in.positions.Grad, s.dy, in.at(ctx), 0)
	}
	tokens := s.tokens
	s.tokens = nil
	return in.tokens.BackwardWeight(ctx, tokens)
}
