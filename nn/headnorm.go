package nn

import "triax/tensor"

// headNorm is RMSNorm over the features of every head alone, with one weight [hd] that all heads share (Dehghani et al. 2023, §2;
// Qwen3). A rank normalises its own heads, so its gradient of the weight is a partial sum. A nil headNorm does nothing.
type headNorm struct {
	norm
	dim int
}

func newHeadNorm(cfg Config, kit Kit, name string) *headNorm {
	w := kit.Partial(&Param{Name: name + ".weight", Shape: []int{cfg.HeadDim}, Init: Init{Mean: 1}})
	return &headNorm{norm{name: name, eps: cfg.Eps, w: w}, cfg.HeadDim}
}

func (n *headNorm) params() []*Param {
	if n == nil {
		return nil
	}
	return n.Params()
}

// forward: x [T n*hd] → y [T n*hd]. It takes over x.
func (n *headNorm) forward(ctx *Ctx, x *tensor.Tensor) (*tensor.Tensor, Saved, error) {
	if n == nil {
		return x, nil, nil
	}
	y, s, err := n.Forward(ctx, n.heads(x))
	if err != nil {
		return nil, nil, err
	}
	return y.View(x.Shape...), s, nil
}

func (n *headNorm) backwardInput(ctx *Ctx, s Saved, dy *tensor.Tensor) (*tensor.Tensor, error) {
	if n == nil {
		return dy, nil
	}
	dx, err := n.BackwardInput(ctx, s, n.heads(dy))
	if err != nil {
		return nil, err
	}
	return dx.View(dy.Shape...), nil
}

func (n *headNorm) backwardWeight(ctx *Ctx, s Saved) error {
	if n == nil {
		return nil
	}
	return n.BackwardWeight(ctx, s)
}

// heads is x with a row a head.
func (n *headNorm) heads(x *tensor.Tensor) *tensor.Tensor { return x.View(x.Len()/n.dim, n.dim) }
