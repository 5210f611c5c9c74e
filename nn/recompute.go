package nn

import "triax/tensor"

// What of a forward pass is thrown away and made again in backward: Config.Recompute.
const (
	RecomputeNone      = "none"
	RecomputeSelective = "selective" // the attention half of each block, from its normalised input
	RecomputeFull      = "full"      // whole blocks, from their input (Chen et al. 2016, §3)
)

// RecomputeModes lists them.
var RecomputeModes = []string{RecomputeNone, RecomputeSelective, RecomputeFull}

// recompute keeps only a layer's input and runs its forward again before the backward. Dropout masks are functions of
// their place, so the second run sees the first one's.
type recompute struct{ Layer }

type recomputeSaved struct {
	x     *tensor.Tensor // until backward
	inner Saved          // from then on
}

func (s *recomputeSaved) Release() {
	s.x.Release()
	if s.inner != nil {
		s.inner.Release()
	}
	*s = recomputeSaved{}
}

func (r *recompute) Forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	y, inner, err := r.Layer.Forward(ctx, x.Retain())
	if err != nil {
		x.Release()
		return nil, nil, err
	}
	inner.Release()
	return y, &recomputeSaved{x: x}, nil
}

func (r *recompute) BackwardInput(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*recomputeSaved)
	if err := r.again(ctx, s); err != nil {
		dy.Release()
		return nil, err
	}
	return r.Layer.BackwardInput(ctx, s.inner, dy)
}

// Backward is both halves.
func (r *recompute) Backward(ctx *Ctx, saved Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	s := saved.(*recomputeSaved)
	if err := r.again(ctx, s); err != nil {
		dy.Release()
		return nil, err
	}
	inner := s.inner
	s.inner = nil
	return Backward(ctx, r.Layer, inner, dy)
}

// again runs the forward a second time, for what it keeps.
func (r *recompute) again(ctx *Ctx, s *recomputeSaved) error {
	x := s.x
	s.x = nil
	again := *ctx
	again.AddLoss = nil // the first run has added them
	y, inner, err := r.Layer.Forward(&again, x)
	if err != nil {
		return err
	}
	y.Release()
	s.inner = inner
	return nil
}

func (r *recompute) BackwardWeight(ctx *Ctx, saved Saved) error {
	s := saved.(*recomputeSaved)
	inner := s.inner
	s.inner = nil
	return r.Layer.BackwardWeight(ctx, inner)
}
