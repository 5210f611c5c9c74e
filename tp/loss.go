package tp

import (
	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// loss is cross-entropy over logits cut by vocabulary. Only three numbers a token cross the group: the
// maximum, the sum of exponentials and the target's logit; logits are never gathered (Shoeybi et al. 2019, §3).
type loss struct {
	kit           Kit
	lo, hi, vocab int
}

// Loss is the loss over the columns of Table(vocab).
func (k Kit) Loss(vocab int) nn.Layer {
	t := k.Table("", vocab, 1, nn.Init{})
	return &loss{kit: k, lo: t.Lo, hi: t.Hi, vocab: vocab}
}

func (l *loss) Name() string        { return "loss" }
func (l *loss) Params() []*nn.Param { return nil }

type lossSaved struct{ logits, max, sum *tensor.Tensor }

func (s *lossSaved) Release() {
	s.logits.Release()
	s.max.Release()
	s.sum.Release()
	*s = lossSaved{}
}

func (l *loss) Forward(ctx *nn.Ctx, logits *tensor.Tensor) (*tensor.Tensor, nn.Saved, error) {
	dev, T := ctx.Dev, logits.Shape[0]
	s := &lossSaved{logits: logits, max: tensor.NewAccum(dev, tensor.Activations, T), sum: tensor.NewAccum(dev, tensor.Activations, 2*T)}
	fail := func(err error) (*tensor.Tensor, nn.Saved, error) { s.Release(); return nil, nil, err }
	dev.RowMax(s.max, logits, l.hi-l.lo)
	if err := l.kit.Group.AllReduce(ctx, s.max, comm.Max); err != nil {
		return fail(err)
	}
	// Sum and target travel in one message.
	sum, target := s.sum.Flat(0, T), s.sum.Flat(T, 2*T)
	dev.RowSum(sum, target, logits, s.max, ctx.Batch.Targets, l.lo, l.hi-l.lo)
	if err := l.kit.Group.AllReduce(ctx, s.sum, comm.Sum); err != nil {
		return fail(err)
	}
	y := dev.Heap().New(tensor.Workspace, tensor.F64, 1)
	dev.Upload(y, []float64{dev.LossOf(sum, target, s.max, ctx.Batch.Targets) * ctx.Batch.Scale})
	return y, s, nil
}

func (l *loss) BackwardInput(ctx *nn.Ctx, saved nn.Saved, _ *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*lossSaved)
	ctx.Dev.LossGrad(s.logits, s.max, s.sum.Flat(0, s.max.Len()), ctx.Batch.Targets, l.lo, l.hi-l.lo, ctx.Batch.Scale)
	dx := s.logits
	s.logits = nil
	return dx, nil
}

func (l *loss) BackwardWeight(_ *nn.Ctx, saved nn.Saved) error {
	saved.Release()
	return nil
}
