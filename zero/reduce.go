package zero

import (
	"context"
	"fmt"

	"triax/comm"
	"triax/tensor"
)

// inFlight bounds the elements of reduce-scatters that wait on the stream, and so their memory: two buckets, or a whole unit's where it has more, since they
// all become ready together and move while the next unit computes.
func inFlight(buckets []*bucket, of [][]*bucket) int64 {
	most := 0
	for _, b := range learning(buckets) {
		most = max(most, 2*b.padded)
	}
	return max(int64(most), widest(of))
}

// widest is the elements of the unit with the most that learn.
func widest(of [][]*bucket) int64 {
	most := 0
	for _, list := range of {
		sum := 0
		for _, b := range learning(list) {
			sum += b.padded
		}
		most = max(most, sum)
	}
	return int64(most)
}

// flight is a reduce-scatter under way: grad → part, to be added into the bucket's sum.
type flight struct {
	bucket     *bucket
	grad, part *tensor.Tensor
	pending    *comm.Pending
}

// OpenGrad makes memory for the gradients that a unit's weight backward is about to add into.
// At stages 0 and 1 it is always there.
func (o *Optimizer) OpenGrad(unit int) {
	if o.cfg.Stage < 2 {
		return
	}
	for _, b := range o.learns[unit] {
		m := &b.mem
		if m.grad == nil {
			m.grad = o.zeros(tensor.Buffers, o.accum(), b.padded)
			m.left = b.uses[o.units[unit].Stage]
			b.attach()
		}
	}
}

// CloseGrad tells that a unit's weight backward of one microbatch is done; last says that it was the unit's last of the step.
//
// At stages 2 and 3 a bucket whose last use of the microbatch this was is reduce-scattered at once, added to this rank's shard,
// and its memory dropped (Rajbhandari et al. 2020, §5.2): nobody holds whole gradients between microbatches.
// At stages 0 and 1 a bucket is reduced when its last use of the step is over, so that later buckets' reductions run
// beside the rest of the backward pass (Li et al. 2020, §3.2.3).
func (o *Optimizer) CloseGrad(ctx context.Context, unit int, last bool) error {
	if last {
		o.done[unit] = true
	}
	for _, b := range o.learns[unit] {
		if o.cfg.Stage >= 2 {
			m := &b.mem
			if m.left--; m.left > 0 {
				continue
			}
			if err := o.scatter(ctx, b); err != nil {
				return fmt.Errorf("reduce %v: %w", b, err)
			}
		}
		if last {
			if err := o.reduceIfWhole(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// scatter starts to sum a microbatch's gradients of a bucket into the owners' shards.
func (o *Optimizer) scatter(ctx context.Context, b *bucket) error {
	f := flight{bucket: b, grad: b.mem.grad, part: tensor.NewAccum(o.dev, tensor.Buffers, b.mem.sum.Len())}
	b.mem.grad = nil
	b.attach()
	f.pending = o.lane(o.shards(b)).Do(ctx, func(ctx context.Context) error { return o.shards(b).ReduceScatter(ctx, o.dev, f.part, f.grad) })
	o.flights, o.aloft = append(o.flights, f), o.aloft+int64(f.grad.Len())
	keep := int64(0)
	if o.stream != nil {
		keep = inFlight(o.buckets, o.of)
	}
	return o.land(ctx, keep)
}

// land ends the oldest flights until at most keep elements are left. Additions are in the order of the flights, overlapped or not.
func (o *Optimizer) land(ctx context.Context, keep int64) error {
	for o.aloft > keep {
		f := o.flights[0]
		if _, err := f.pending.Wait(ctx); err != nil {
			return err
		}
		o.dev.Add(f.bucket.mem.sum, f.part)
		o.aloft -= int64(f.grad.Len())
		f.part.Release()
		f.grad.Release()
		o.flights = o.flights[1:]
	}
	return nil
}

// Reduce is the R op of a virtual stage, after its last weight gradient of the step. Its buckets are under way by then,
// but for those that wait for another stage.
func (o *Optimizer) Reduce(ctx context.Context, stage int) error {
	for i := len(o.units) - 1; i >= 0; i-- { // backward runs from the last layer to the first, and so do the reductions
		if o.units[i].Stage != stage {
			continue
		}
		o.done[i] = true
		for _, b := range o.learns[i] {
			if err := o.reduceIfWhole(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduceIfWhole starts a bucket's reduction once all its units have added their last gradient.
func (o *Optimizer) reduceIfWhole(ctx context.Context, b *bucket) error {
	if b.mem.reduced != nil {
		return nil
	}
	for _, u := range b.units {
		if !o.done[u] {
			return nil
		}
	}
	if o.cfg.Stage >= 2 && o.replicas.Size() > 1 {
		if err := o.land(ctx, 0); err != nil { // what follows reads the sum
			return fmt.Errorf("reduce %v: %w", b, err)
		}
	}
	m := &b.mem
	if o.cfg.Stage == 1 {
		lo, hi := o.bounds(b)
		m.sum = tensor.NewAccum(o.dev, tensor.Buffers, hi-lo)
		if o.shards(b).Size() == 1 {
			o.dev.Copy(m.sum, m.grad)
		}
	}
	m.reduced = o.stream.Do(ctx, func(ctx context.Context) error { return o.reduceBucket(ctx, b) })
	if o.stream == nil {
		return o.settle(ctx, b)
	}
	return nil
}

func (o *Optimizer) reduceBucket(ctx context.Context, b *bucket) error {
	m := &b.mem
	switch o.cfg.Stage {
	case 0:
		return o.data(b).AllReduce(ctx, m.grad, comm.Sum)
	case 1:
		if g := o.shards(b); g.Size() > 1 {
			if err := g.ReduceScatter(ctx, o.dev, m.sum, m.grad); err != nil {
				return err
			}
		}
	}
	return o.replicas.AllReduce(ctx, m.sum, comm.Sum)
}

// settle waits until a bucket's gradients are whole.
func (o *Optimizer) settle(ctx context.Context, b *bucket) error {
	if b.mem.reduced == nil {
		panic(fmt.Sprintf("zero: step before the last gradient of %v", b))
	}
	if _, err := b.mem.reduced.Wait(ctx); err != nil {
		return fmt.Errorf("reduce %v: %w", b, err)
	}
	return nil
}

// settleAll waits for all gradients of the step.
func (o *Optimizer) settleAll(ctx context.Context) error {
	if err := o.land(ctx, 0); err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	for _, b := range o.learned {
		if err := o.settle(ctx, b); err != nil {
			return err
		}
	}
	return nil
}
