package zero

import (
	"context"
	"fmt"

	"triax/tensor"
)

// Gather makes a unit's parameters whole before forward or backward uses them. At stage 3 this is an
// all-gather unless an earlier use has not been freed yet; at the other stages they always are.
func (o *Optimizer) Gather(ctx context.Context, unit int) error {
	if o.cfg.Stage < 3 {
		return nil
	}
	for _, b := range o.of[unit] {
		b.mem.users++
		if b.mem.users > 1 {
			continue
		}
		b.mem.data = o.dev.New(tensor.Buffers, b.padded)
		if err := o.shards.AllGather(ctx, o.dev, b.mem.data, b.mem.shard); err != nil {
			return fmt.Errorf("gather %v: %w", b, err)
		}
		b.attach()
	}
	return nil
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
