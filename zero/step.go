package zero

import (
	"context"
	"fmt"
	"math"
	"slices"

	"triax/comm"
	"triax/tensor"
)

// Update is one optimizer step's inputs.
type Update struct {
	Step int     // from 1
	Rate float64 // learning rate
	Clip float64 // bound on the global gradient norm; 0 for none
	Loss float64 // this rank's share of the step's loss; the shares are summed over all ranks
}

// Result is the same on every rank.
type Result struct {
	Loss    float64
	Norm    float64 // of the whole model's gradient, before clipping
	Skipped bool    // the norm was not finite: nothing was updated
}

// Step is the U op: sums what other axes owe, takes the global norm, clips, updates this rank's part and
// makes the parameters whole again. A norm that is not finite skips the update on all ranks alike,
// because all of them see the same sum.
func (o *Optimizer) Step(ctx context.Context, u Update) (Result, error) {
	if err := o.settleAll(ctx); err != nil {
		return Result{}, err
	}
	if err := o.sumShares(ctx); err != nil {
		return Result{}, err
	}
	if o.Observe != nil {
		o.observe()
	}
	if o.Check {
		if err := o.verifyGrads(ctx); err != nil {
			return Result{}, err
		}
	}
	res, err := o.norm(ctx, u.Loss)
	if err != nil {
		return Result{}, err
	}
	res.Skipped = math.IsNaN(res.Norm) || math.IsInf(res.Norm, 0)
	if !res.Skipped {
		scale := 1.0
		if u.Clip > 0 && res.Norm > u.Clip {
			scale = u.Clip / res.Norm
		}
		for _, b := range o.learned {
			if err := o.update(b, u, scale); err != nil {
				return res, fmt.Errorf("update %v: %w", b, err)
			}
		}
	}
	spread := make([]*comm.Pending, len(o.learned))
	for i, b := range o.learned {
		spread[i] = o.finish(ctx, b, !res.Skipped)
	}
	for i, b := range o.learned {
		if _, err := spread[i].Wait(ctx); err != nil {
			return res, fmt.Errorf("gather updated %v: %w", b, err)
		}
	}
	clear(o.done)
	return res, nil
}

// update runs the rule over this rank's part, in runs of parameters that share the weight-decay setting; with offloaded state, or a master
// copy that is rounded while it is still in the caches, a window at a time.
func (o *Optimizer) update(b *bucket, u Update, scale float64) error {
	lo, hi := o.bounds(b)
	list := b.pieces(lo, hi)
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j].param.Decay == list[i].param.Decay {
			j++
		}
		from, to := list[i].at-lo, list[j-1].at-lo+list[j-1].hi-list[j-1].lo
		step := to - from
		switch {
		case o.disk != nil:
			step = window
		case b.mem.master != nil:
			step = roundWindow
		}
		for at := from; at < to; at += step {
			if err := o.updateRun(b, at, min(at+step, to), list[i].param.Decay, u, scale); err != nil {
				return err
			}
		}
		i = j
	}
	return nil
}

// roundWindow is the elements of a master copy that are updated before they are rounded.
const roundWindow = 1 << 18

func (o *Optimizer) updateRun(b *bucket, from, to int, decay bool, u Update, scale float64) error {
	state := make([]*tensor.Tensor, len(b.mem.state))
	for k, s := range b.mem.state {
		state[k] = s.Flat(from, to)
	}
	o.rule.Update(o.dev, b.mem.weights().Flat(from, to), b.mem.sum.Flat(from, to), state, u.Step, u.Rate, decay, scale)
	if b.mem.master != nil {
		o.dev.Copy(b.mem.shard.Flat(from, to), b.mem.master.Flat(from, to))
	}
	if o.disk == nil {
		return nil
	}
	for _, s := range append(slices.Clone(b.mem.state), b.mem.master) {
		if err := o.disk.drop(s, from, to); err != nil {
			return err
		}
	}
	return nil
}

// finish starts to spread updated weights and clears gradients for the next step.
func (o *Optimizer) finish(ctx context.Context, b *bucket, updated bool) *comm.Pending {
	m := &b.mem
	switch o.cfg.Stage {
	case 0:
		o.dev.Zero(m.grad)
	case 1:
		m.sum.Release()
		m.sum = nil
		o.dev.Zero(m.grad)
	default:
		o.dev.Zero(m.sum)
	}
	m.reduced = nil
	return o.lane(o.shards(b)).Do(ctx, func(ctx context.Context) error {
		if !updated || o.cfg.Stage == 0 || o.cfg.Stage == 3 {
			return nil
		}
		return o.shards(b).AllGather(ctx, o.dev, m.data, m.shard)
	})
}

// norm adds up the squares of every logical parameter once: of the ranks that hold a replica of it along the data axes each
// counts its own part, along the other axes the one whose record says Counted.
func (o *Optimizer) norm(ctx context.Context, loss float64) (Result, error) {
	sum := 0.0
	if o.replicas.Place() == 0 {
		for _, b := range o.learned {
			// The part of the data axis's place, also where all places hold everything.
			g := o.shards(b)
			s := b.padded / g.Size()
			lo := g.Place() * s
			base, _ := o.bounds(b)
			for _, p := range b.pieces(lo, lo+s) {
				if p.param.Counted {
					sum += o.dev.SumSquares(b.mem.sum.Flat(p.at-base, p.at-base+p.hi-p.lo))
				}
			}
		}
	}
	t := o.dev.Heap().New(tensor.Workspace, tensor.F64, 2)
	defer t.Release()
	o.dev.Upload(t, []float64{sum, loss})
	if err := o.groups.World.AllReduce(ctx, t, comm.Sum); err != nil {
		return Result{}, fmt.Errorf("global norm: %w", err)
	}
	var both [2]float64
	o.dev.Download(both[:], t)
	return Result{Norm: math.Sqrt(both[0]), Loss: both[1]}, nil
}

func (o *Optimizer) observe() {
	for _, b := range o.learned {
		base, hi := o.bounds(b)
		for _, p := range b.pieces(base, hi) {
			o.Observe(p.param, p.lo, b.mem.sum.Flat(p.at-base, p.at-base+p.hi-p.lo))
		}
	}
}
