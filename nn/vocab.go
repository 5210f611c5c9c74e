package nn

import "triax/tensor"

// embedding is the token table: y = table[ids].
type embedding struct{ table *Param }

func (e *embedding) Name() string     { return "embedding" }
func (e *embedding) Params() []*Param { return []*Param{e.table} }

type embeddingSaved struct{ dy *tensor.Tensor }

func (s *embeddingSaved) Release() { s.dy.Release(); s.dy = nil }

// Forward: ids of the batch → [T D].
func (e *embedding) Forward(ctx *Ctx, _ *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	ids := ctx.Batch.Tokens
	y := ctx.Dev.New(tensor.Activations, ids.Len(), e.table.Local[1])
	ctx.Dev.Embed(y, e.table.Data, ids, e.table.Lo)
	return y, &embeddingSaved{}, nil
}

func (e *embedding) BackwardInput(_ *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	saved.(*embeddingSaved).dy = dy
	return nil, nil
}

func (e *embedding) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*embeddingSaved)
	defer s.Release()
	if e.table.Frozen {
		return nil
	}
	ctx.Dev.EmbedGrad(e.table.Grad, s.dy, ctx.Batch.Tokens, e.table.Lo)
	return nil
}

// head is the output matrix: logits = x table^T.
type head struct{ linear }

func (h *head) Name() string { return "head" }

// Forward: x [T D] → logits [T V].
func (h *head) Forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	ys, s, err := h.linear.Forward(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	return ys[0], s, nil
}

func (h *head) BackwardInput(ctx *Ctx, s Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	return h.linear.BackwardInput(ctx, s, []*tensor.Tensor{dy})
}
