package tp

import (
	"context"

	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// The four crossings between regions where token rows are whole or cut and regions where features are cut
// (Shoeybi et al. 2019, §3, "f" and "g"; Korthikanti et al. 2022, §4.2.2, "g" and "g-bar").

// gather makes all token rows from this rank's: with sequence parallelism an all-gather, else nothing.
// It does not take x over; the result has a reference of its own.
func (k Kit) gather(ctx *nn.Ctx, x *tensor.Tensor, kind tensor.Kind) (*tensor.Tensor, error) {
	if !k.Sequence || k.degree() == 1 {
		return x.Retain(), nil
	}
	full := ctx.Dev.New(kind, x.Shape[0]*k.degree(), x.Shape[1])
	if err := k.Group.AllGather(ctx, ctx.Dev, full, x); err != nil {
		full.Release()
		return nil, err
	}
	return full, nil
}

// sum is a reduction under way.
type sum struct {
	kit     Kit
	x, rows *tensor.Tensor // partial results; with sequence parallelism this rank's rows of the sum
	pending *comm.Pending
}

// start begins what reduce does. x must be left alone until wait.
func (k Kit) start(ctx *nn.Ctx, x *tensor.Tensor) sum {
	s := sum{kit: k, x: x}
	switch {
	case k.degree() == 1:
		return s
	case k.Sequence:
		s.rows = ctx.Dev.New(tensor.Activations, x.Shape[0]/k.degree(), x.Shape[1])
		s.pending = k.Stream.Do(ctx, func(c context.Context) error { return k.Group.ReduceScatter(c, ctx.Dev, s.rows, x) })
	default:
		s.pending = k.Stream.Do(ctx, func(c context.Context) error { return k.Group.AllReduce(c, x, comm.Sum) })
	}
	return s
}

// wait ends it.
func (s sum) wait(ctx *nn.Ctx) (*tensor.Tensor, error) {
	if s.pending == nil {
		return s.x, nil
	}
	if _, err := s.pending.Wait(ctx); err != nil {
		return nil, err // the memory is the stream's until it has stopped
	}
	if s.rows == nil {
		return s.x, nil
	}
	s.x.Release()
	return s.rows, nil
}

// reduce sums the ranks' partial results x [T D] and leaves each the rows it keeps between layers:
// all of them (all-reduce, in place) or its own (reduce-scatter). It takes x over.
func (k Kit) reduce(ctx *nn.Ctx, x *tensor.Tensor) (*tensor.Tensor, error) {
	k.Stream = nil
	s := k.start(ctx, x)
	y, err := s.wait(ctx)
	if err != nil {
		x.Release()
		s.rows.Release()
	}
	return y, err
}
