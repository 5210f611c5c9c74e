package train

import (
	"context"
	"fmt"

	"triax/nn"
	"triax/tensor"
	"triax/zero"
)

// stage is one virtual pipeline stage on one rank: a run of layers, with their parameters brought and their
// gradients taken away by the optimizer. It implements pp.Stage.
type stage struct {
	id     int
	layers []nn.Layer
	unit   int // of layers[0] in the optimizer
	last   bool
	opt    *zero.Optimizer
	call   func(ctx context.Context, micro int) *nn.Ctx
	addUp  func(loss float64)
	tap    func() func(logits *tensor.Tensor) error // what takes the logits in place of the loss, if anything does

	saved   map[int][]nn.Saved // by microbatch
	micros  int                // of a step
	weights int                // weight backwards begun in this step
}

func (s *stage) Forward(ctx context.Context, micro int, x *tensor.Tensor) (*tensor.Tensor, error) {
	c := s.call(ctx, micro)
	saved := make([]nn.Saved, 0, len(s.layers))
	for i, l := range s.layers {
		if tap := s.tap(); s.last && i == len(s.layers)-1 && tap != nil {
			defer x.Release()
			return nil, s.sampled(saved, tap(x))
		}
		y, keep, err := s.forward(c, i, x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name(), err)
		}
		saved, x = append(saved, keep), y
	}
	if c.Train {
		s.saved[micro] = saved
	} else {
		for _, k := range saved {
			k.Release()
		}
	}
	if !s.last {
		return x, nil
	}
	var loss [1]float64
	c.Dev.Download(loss[:], x)
	x.Release()
	s.addUp(loss[0])
	return nil, nil
}

// sampled ends a forward pass that stopped at the logits.
func (s *stage) sampled(saved []nn.Saved, err error) error {
	for _, k := range saved {
		k.Release()
	}
	return err
}

func (s *stage) forward(c *nn.Ctx, i int, x *tensor.Tensor) (*tensor.Tensor, nn.Saved, error) {
	if err := ended(c); err != nil {
		return nil, nil, err
	}
	if err := s.opt.Gather(c, s.unit+i, +1); err != nil {
		return nil, nil, err
	}
	y, keep, err := s.layers[i].Forward(c, x)
	if err != nil {
		return nil, nil, err
	}
	if c.Train {
		s.opt.FreeAfterForward(s.unit + i)
	} else {
		s.opt.Free(s.unit + i)
	}
	return y, keep, nil
}

func (s *stage) BackwardInput(ctx context.Context, micro int, dy *tensor.Tensor) (*tensor.Tensor, error) {
	c := s.call(ctx, micro)
	for i := len(s.layers) - 1; i >= 0; i-- {
		var err error
		if dy, err = s.input(c, micro, i, dy); err != nil {
			return nil, err
		}
	}
	return dy, nil
}

func (s *stage) BackwardWeight(ctx context.Context, micro int) error {
	c := s.call(ctx, micro)
	s.weights++
	for i := len(s.layers) - 1; i >= 0; i-- {
		if err := s.weight(c, micro, i); err != nil {
			return err
		}
	}
	delete(s.saved, micro)
	return nil
}

func (s *stage) Backward(ctx context.Context, micro int, dy *tensor.Tensor) (*tensor.Tensor, error) {
	c := s.call(ctx, micro)
	s.weights++
	for i := len(s.layers) - 1; i >= 0; i-- {
		var err error
		if dy, err = s.both(c, micro, i, dy); err != nil {
			return nil, err
		}
	}
	delete(s.saved, micro)
	return dy, nil
}

func (s *stage) input(c *nn.Ctx, micro, i int, dy *tensor.Tensor) (*tensor.Tensor, error) {
	if err := ended(c); err != nil {
		return nil, err
	}
	if err := s.opt.Gather(c, s.unit+i, -1); err != nil {
		return nil, err
	}
	dx, err := s.layers[i].BackwardInput(c, s.saved[micro][i], dy)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.layers[i].Name(), err)
	}
	s.opt.FreeAfterBackward(s.unit + i)
	return dx, nil
}

// both is input and weight gradient of a layer.
func (s *stage) both(c *nn.Ctx, micro, i int, dy *tensor.Tensor) (*tensor.Tensor, error) {
	if err := ended(c); err != nil {
		return nil, err
	}
	if err := s.opt.Gather(c, s.unit+i, -1); err != nil {
		return nil, err
	}
	s.opt.OpenGrad(s.unit + i)
	dx, err := nn.Backward(c, s.layers[i], s.saved[micro][i], dy)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.layers[i].Name(), err)
	}
	s.opt.FreeAfterBackward(s.unit + i)
	return dx, s.opt.CloseGrad(c, s.unit+i, s.weights == s.micros)
}

func (s *stage) weight(c *nn.Ctx, micro, i int) error {
	s.opt.OpenGrad(s.unit + i)
	if err := s.layers[i].BackwardWeight(c, s.saved[micro][i]); err != nil {
		return fmt.Errorf("%s: %w", s.layers[i].Name(), err)
	}
	return s.opt.CloseGrad(c, s.unit+i, s.weights == s.micros)
}

func (s *stage) Reduce(ctx context.Context) error {
	s.weights = 0
	return s.opt.Reduce(ctx, s.id)
}

// drop releases what a failed step left behind.
func (s *stage) drop() {
	for _, saved := range s.saved {
		for _, k := range saved {
			k.Release()
		}
	}
	clear(s.saved)
	s.weights = 0
}

// ended reports why the run was stopped, between layers, so that a long step ends soon.
func ended(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}
