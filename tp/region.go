package tp

import (
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

// reduce sums the ranks' partial results x [T D] and leaves each the rows it keeps between layers:
// all of them (all-reduce, in place) or its own (reduce-scatter). It takes x over.
func (k Kit) reduce(ctx *nn.Ctx, x *tensor.Tensor) (*tensor.Tensor, error) {
	if k.degree() == 1 {
		return x, nil
	}
	if !k.Sequence {
		if err := k.Group.AllReduce(ctx, x, comm.Sum); err != nil {
			x.Release()
			return nil, err
		}
		return x, nil
	}
	rows := ctx.Dev.New(tensor.Activations, x.Shape[0]/k.degree(), x.Shape[1])
	err := k.Group.ReduceScatter(ctx, ctx.Dev, rows, x)
	x.Release()
	if err != nil {
		rows.Release()
		return nil, err
	}
	return rows, nil
}
