package pp_test

import (
	"context"
	"fmt"

	"triax/schedule"
	"triax/tensor"
)

// toy is a stage with one weight: y = w x + stage, loss = sum of the last y. It owns memory as a real stage does,
// and refuses ops that come out of turn.
type toy struct {
	stage, stages int
	w, grad       float64
	heap          *tensor.Heap
	do            func(context.Context, schedule.Op) error

	kept   map[int]*tensor.Tensor // x by microbatch, from F to the weight gradient
	owed   map[int]*tensor.Tensor // dy by microbatch, from I to W
	losses map[int]float64        // by microbatch, on the last stage
	done   int                    // weight gradients since the last reduction
}

func newToy(stage, stages int, heap *tensor.Heap, do func(context.Context, schedule.Op) error) *toy {
	return &toy{stage: stage, stages: stages, w: 1 + float64(stage%3)/8, heap: heap, do: do,
		kept: map[int]*tensor.Tensor{}, owed: map[int]*tensor.Tensor{}, losses: map[int]float64{}}
}

func (x *toy) op(k schedule.Kind, micro int) schedule.Op {
	return schedule.Op{Stage: x.stage, Kind: k, Micro: micro}
}

func (x *toy) fresh(value func(i int) float64) *tensor.Tensor {
	t := x.heap.New(spec.Kind, spec.DType, spec.Shape...)
	for i := range t.F64() {
		t.F64()[i] = value(i)
	}
	return t
}

func (x *toy) Forward(ctx context.Context, micro int, in *tensor.Tensor) (*tensor.Tensor, error) {
	if x.stage == 0 {
		in = x.fresh(func(i int) float64 { return float64(10*micro + i + 1) })
	}
	x.kept[micro] = in
	if err := x.do(ctx, x.op(schedule.F, micro)); err != nil {
		return nil, err
	}
	y := func(i int) float64 { return x.w*in.F64()[i] + float64(x.stage) }
	if x.stage < x.stages-1 {
		return x.fresh(y), nil
	}
	x.losses[micro] = 0
	for i := range in.F64() {
		x.losses[micro] += y(i)
	}
	return nil, nil
}

func (x *toy) BackwardInput(ctx context.Context, micro int, dy *tensor.Tensor) (*tensor.Tensor, error) {
	return x.back(ctx, x.op(schedule.I, micro), dy)
}

func (x *toy) back(ctx context.Context, op schedule.Op, dy *tensor.Tensor) (*tensor.Tensor, error) {
	if x.stage == x.stages-1 {
		dy = x.fresh(func(int) float64 { return 1 })
	}
	x.owed[op.Micro] = dy
	if err := x.do(ctx, op); err != nil {
		return nil, err
	}
	if x.kept[op.Micro] == nil {
		return nil, fmt.Errorf("%v without its forward", op)
	}
	if x.stage == 0 {
		return nil, nil
	}
	return x.fresh(func(i int) float64 { return x.w * dy.F64()[i] }), nil
}

func (x *toy) BackwardWeight(ctx context.Context, micro int) error {
	if err := x.do(ctx, x.op(schedule.W, micro)); err != nil {
		return err
	}
	return x.weight(micro)
}

func (x *toy) weight(micro int) error {
	in, dy := x.kept[micro], x.owed[micro]
	if in == nil || dy == nil {
		return fmt.Errorf("weight gradient of microbatch %d without what it needs", micro)
	}
	for i := range in.F64() {
		x.grad += in.F64()[i] * dy.F64()[i]
	}
	x.done++
	in.Release()
	dy.Release()
	delete(x.kept, micro)
	delete(x.owed, micro)
	return nil
}

func (x *toy) Backward(ctx context.Context, micro int, dy *tensor.Tensor) (*tensor.Tensor, error) {
	dx, err := x.back(ctx, x.op(schedule.B, micro), dy)
	if err != nil {
		return nil, err
	}
	return dx, x.weight(micro)
}

func (x *toy) Reduce(ctx context.Context) error {
	if n := len(x.losses); x.stage == x.stages-1 && n != x.done {
		return fmt.Errorf("reduction after %d of %d microbatches", x.done, n)
	}
	x.done = 0
	return x.do(ctx, schedule.Op{Stage: x.stage, Kind: schedule.R})
}

// drop gives back what an unfinished step has left.
func (x *toy) drop() {
	for _, list := range []map[int]*tensor.Tensor{x.kept, x.owed} {
		for micro, t := range list {
			t.Release()
			delete(list, micro)
		}
	}
}
