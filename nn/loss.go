package nn

import "triax/tensor"

// loss is cross-entropy over whole rows of logits. It keeps logits and two numbers a token, no probabilities.
type loss struct{ vocab int }

func (l *loss) Name() string     { return "loss" }
func (l *loss) Params() []*Param { return nil }

type lossSaved struct{ logits, max, sum *tensor.Tensor }

func (s *lossSaved) Release() {
	s.logits.Release()
	s.max.Release()
	s.sum.Release()
	*s = lossSaved{}
}

// Forward: logits [T V] → [1] float64: the sum over unmasked tokens of -log p(target), times Batch.Scale.
func (l *loss) Forward(ctx *Ctx, logits *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	dev, T := ctx.Dev, logits.Shape[0]
	s := &lossSaved{logits: logits, max: tensor.NewAccum(dev, tensor.Activations, T), sum: tensor.NewAccum(dev, tensor.Activations, T)}
	target := tensor.NewAccum(dev, tensor.Workspace, T)
	defer target.Release()
	dev.RowMax(s.max, logits, l.vocab)
	dev.RowSum(s.sum, target, logits, s.max, ctx.Batch.Targets, 0, l.vocab)
	y := dev.Heap().New(tensor.Workspace, tensor.F64, 1)
	dev.Upload(y, []float64{dev.LossOf(s.sum, target, s.max, ctx.Batch.Targets) * ctx.Batch.Scale})
	return y, s, nil
}

// BackwardInput turns the kept logits into their gradient, in place.
func (l *loss) BackwardInput(ctx *Ctx, saved Saved, _ *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*lossSaved)
	ctx.Dev.LossGrad(s.logits, s.max, s.sum, ctx.Batch.Targets, 0, l.vocab, ctx.Batch.Scale)
	dx := s.logits
	s.logits = nil
	return dx, nil
}

func (l *loss) BackwardWeight(_ *Ctx, saved Saved) error {
	saved.Release()
	return nil
}
