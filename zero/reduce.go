package zero

import (
	"context"
	"fmt"

	"triax/comm"
	"triax/tensor"
)

// OpenGrad makes memory for the gradients that a unit's weight backward is about to add into.
// At stages 0 and 1 it is always there.
func (o *Optimizer) OpenGrad(unit int) {
	if o.cfg.Stage < 2 {
		return
	}
	for _, b := range o.of[unit] {
		m := &b.mem
		if m.grad == nil {
			m.grad = o.zeros(tensor.Buffers, b.padded)
			m.left = b.uses[o.units[unit].Stage]
			b.attach()
		}
	}
}

// CloseGrad tells that a unit's weight backward of one microbatch is done. At stages 2 and 3 a bucket whose last
// use this was is reduce-scattered at once, added to this rank's shard, and its memory dropped
// (Rajbhandari et al. 2020, §5.2): nobody holds whole gradients between microbatches.
func (o *Optimizer) CloseGrad(ctx context.Context, unit int) error {
	if o.cfg.Stage < 2 {
		return nil
	}
	for _, b := range o.of[unit] {
		m := &b.mem
		if m.left--; m.left > 0 {
			continue
		}
		part := o.dev.New(tensor.Buffers, m.sum.Len())
		err := o.shards.ReduceScatter(ctx, o.dev, part, m.grad)
		if err == nil {
			o.dev.Add(m.sum, part)
		}
		part.Release()
		m.grad.Release()
		m.grad = nil
		b.attach()
		if err != nil {
			return fmt.Errorf("reduce %v: %w", b, err)
		}
	}
	return nil
}

// Reduce is the R op of a virtual stage, after its last weight gradient of the step: buckets that take nothing from
// any stage still to come are summed over the data axis. At stages 2 and 3 that has already happened.
func (o *Optimizer) Reduce(ctx context.Context, stage int) error {
	o.closed[stage] = true
	// Backward runs through the layers from the last to the first, and so do the reductions.
	for i := len(o.buckets) - 1; i >= 0; i-- {
		b := o.buckets[i]
		if b.mem.reduced || !o.complete(b) {
			continue
		}
		if err := o.reduceBucket(ctx, b); err != nil {
			return fmt.Errorf("reduce %v: %w", b, err)
		}
		b.mem.reduced = true
	}
	return nil
}

func (o *Optimizer) complete(b *bucket) bool {
	for _, s := range b.stages {
		if !o.closed[s] {
			return false
		}
	}
	return true
}

func (o *Optimizer) reduceBucket(ctx context.Context, b *bucket) error {
	m := &b.mem
	switch o.cfg.Stage {
	case 0:
		return o.data.AllReduce(ctx, m.grad, comm.Sum)
	case 1:
		lo, hi := o.bounds(b)
		m.sum = o.dev.New(tensor.Buffers, hi-lo)
		if err := o.shards.ReduceScatter(ctx, o.dev, m.sum, m.grad); err != nil {
			return err
		}
	}
	return o.replicas.AllReduce(ctx, m.sum, comm.Sum)
}
