package tp

import (
	"triax/nn"
	"triax/tensor"
)

// embedding is a token table cut by rows: a rank looks up the ids it holds and zero for all others, and the
// sum over ranks is the whole lookup (Shoeybi et al. 2019, §3).
type embedding struct {
	kit   Kit
	table *nn.Param
}

// Embedding looks up tokens in a table made by Table.
func (k Kit) Embedding(table *nn.Param) nn.Layer { return &embedding{k, table} }

func (e *embedding) Name() string        { return "embedding" }
func (e *embedding) Params() []*nn.Param { return []*nn.Param{e.table} }

type embeddingSaved struct{ dy *tensor.Tensor }

func (s *embeddingSaved) Release() { s.dy.Release(); s.dy = nil }

func (e *embedding) Forward(ctx *nn.Ctx, _ *tensor.Tensor) (*tensor.Tensor, nn.Saved, error) {
	ids := ctx.Batch.Tokens
	y := ctx.Dev.New(tensor.Activations, ids.Len(), e.table.Local[1])
	ctx.Dev.Embed(y, e.table.Data, ids, e.table.Lo)
	y, err := e.kit.reduce(ctx, y)
	return y, &embeddingSaved{}, err
}

func (e *embedding) BackwardInput(ctx *nn.Ctx, saved nn.Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	full, err := e.kit.gather(ctx, dy, tensor.Activations)
	dy.Release()
	saved.(*embeddingSaved).dy = full
	return nil, err
}

func (e *embedding) BackwardWeight(ctx *nn.Ctx, saved nn.Saved) error {
	s := saved.(*embeddingSaved)
	defer s.Release()
	if e.table.Frozen {
		return nil
	}
	ctx.Dev.EmbedGrad(e.table.Grad, s.dy, ctx.Batch.Tokens, e.table.Lo)
	return nil
}

// head is the output matrix, a column-parallel layer over the vocabulary: logits stay cut.
type head struct{ column }

// Head multiplies by a table made by Table, which the embedding may share.
func (k Kit) Head(table *nn.Param) nn.Layer {
	return &head{column{kit: k, parts: []columnPart{{w: table}}}}
}

func (h *head) Name() string { return "head" }

func (h *head) Forward(ctx *nn.Ctx, x *tensor.Tensor) (*tensor.Tensor, nn.Saved, error) {
	ys, s, err := h.column.Forward(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	return ys[0], s, nil
}

// Backward is both halves of the column-cut matrix.
func (h *head) Backward(ctx *nn.Ctx, s nn.Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	return h.column.Backward(ctx, s, []*tensor.Tensor{dy})
}

func (h *head) BackwardInput(ctx *nn.Ctx, s nn.Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	return h.column.BackwardInput(ctx, s, []*tensor.Tensor{dy})
}
