package zero

import (
	"context"
	"fmt"

	"triax/tensor"
)

// Gather makes a unit's parameters whole before forward or backward uses them. At stage 3 this is an
// all-gather unless an earlier use has not been freed yet; at the other stages they always are. ahead is the direction
// in which the pass runs through the units, +1 or -1: with overlap the units to come are gathered beside this one's
// computation.
func (o *Optimizer) Gather(ctx context.Context, unit, ahead int) error {
	if o.cfg.Stage < 3 {
		return nil
	}
	for _, b := range o.of[unit] {
		b.mem.users++
		o.fetch(ctx, b)
	}
	if o.stream != nil {
		for i := range max(1, o.cfg.Prefetch) {
			next := unit + ahead*(i+1)
			if next < 0 || next >= len(o.units) || o.units[next].Stage != o.units[unit].Stage {
				break
			}
			for _, b := range o.of[next] {
				o.fetch(ctx, b)
			}
		}
	}
	for _, b := range o.of[unit] {
		if _, err := b.mem.coming.Wait(ctx); err != nil {
			return fmt.Errorf("gather %v: %w", b, err)
		}
		b.attach()
	}
	return nil
}

// fetch starts to gather a bucket, unless it is here or on its way.
func (o *Optimizer) fetch(ctx context.Context, b *bucket) {
	m := &b.mem
	if m.data != nil {
		return
	}
	m.data = o.dev.New(tensor.Buffers, b.padded)
	m.coming = o.lane(o.shards(b)).Do(ctx, func(ctx context.Context) error { return o.shards(b).AllGather(ctx, o.dev, m.data, m.shard) })
}

// Free ends one use of a unit's parameters; with the last the whole copy is dropped.
func (o *Optimizer) Free(unit int) {
	if o.cfg.Stage < 3 {
		return
	}
	for _, b := range o.of[unit] {
		b.mem.users--
		if b.mem.users == 0 {
			b.mem.data.Release()
			b.mem.data = nil
			b.attach()
		}
	}
}

// FreeAfterForward is Free, unless the parameters are kept until the backward of the same microbatch,
// which then frees twice (FreeAfterBackward).
func (o *Optimizer) FreeAfterForward(unit int) {
	if !o.cfg.KeepAfterForward {
		o.Free(unit)
	}
}

// FreeAfterBackward ends the use by backward, and by forward where that was kept.
func (o *Optimizer) FreeAfterBackward(unit int) {
	o.Free(unit)
	if o.cfg.KeepAfterForward {
		o.Free(unit)
	}
}
