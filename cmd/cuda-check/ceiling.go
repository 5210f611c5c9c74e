package main

import (
	"context"
	"fmt"
	"time"

	"triax/cuda"
	"triax/tensor"
)

// timed is the seconds that f's work takes on the device, from as many rounds as last long enough.
func (b *bench) timed(ctx context.Context, d *cuda.Device, f func()) (float64, error) {
	f()
	f()
	if err := d.Sync(); err != nil {
		return 0, err
	}
	for rounds := 1; ; rounds *= 2 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := time.Now()
		for range rounds {
			f()
		}
		if err := d.Sync(); err != nil {
			return 0, err
		}
		if took := time.Since(start).Seconds(); took >= b.size.least {
			return took / float64(rounds), nil
		}
	}
}

// filled is a tensor of small numbers: some uploaded, and doubled on the device.
func filled(d *cuda.Device, dtype tensor.DType, shape ...int) *tensor.Tensor {
	t := d.Heap().New(tensor.Workspace, dtype, shape...)
	part := make([]float64, min(t.Len(), 1<<16))
	for i := range part {
		part[i] = float64(i%251-125) / 125
	}
	d.Upload(t.Flat(0, len(part)), part)
	for lo := len(part); lo < t.Len(); lo *= 2 {
		n := min(lo, t.Len()-lo)
		d.Copy(t.Flat(lo, lo+n), t.Flat(0, n))
	}
	return t
}

// ceilings are what products and copies reach at best: what everything else is held against.
func ceilings(ctx context.Context, b *bench) error {
	for _, float := range []tensor.DType{tensor.BF16, tensor.F32} {
		d, err := b.m.Device(cuda.Options{Float: float})
		if err != nil {
			return err
		}
		err = b.ceilingsOf(ctx, d)
		d.Close()
		if err != nil {
			return fmt.Errorf("%v: %w", float, err)
		}
	}
	return nil
}

func (b *bench) ceilingsOf(ctx context.Context, d *cuda.Device) error {
	n := b.size.gemm
	x, y, z := filled(d, d.Float(), n, n), filled(d, d.Float(), n, n), filled(d, d.Float(), n, n)
	for _, form := range []struct {
		name           string
		transA, transB bool
		beta           float64
	}{{"forward", false, true, 0}, {"input gradient", false, false, 0}, {"weight gradient, added", true, false, 1}} {
		took, err := b.timed(ctx, d, func() { d.Gemm(z, x, y, form.transA, form.transB, form.beta) })
		if err != nil {
			return err
		}
		flops := 2 * float64(n) * float64(n) * float64(n) / took
		b.say("product of %d x %d %v, %s: %.0f TFLOP/s", n, n, d.Float(), form.name, flops/1e12)
		if d.Float() == tensor.BF16 {
			b.rate.gemm = max(b.rate.gemm, flops)
		}
	}
	if d.Float() != tensor.BF16 {
		return nil
	}
	from, to := filled(d, tensor.BF16, b.size.copied), filled(d, tensor.BF16, b.size.copied)
	took, err := b.timed(ctx, d, func() { d.Copy(to, from) })
	if err != nil {
		return err
	}
	b.rate.copied = 2 * float64(from.Bytes()) / took
	b.say("copy of %.2f GiB: %.2f TB/s read and written", float64(from.Bytes())/(1<<30), b.rate.copied/1e12)
	return nil
}
