package cpu

import (
	"fmt"
	"math"

	"triax/tensor"
)

// Zero is shared out too: the first touch of fresh memory costs more than most arithmetic.
func (d *core[T]) Zero(t *tensor.Tensor) {
	d.ops.zero = zeroTask{t.Data()}
	d.team.split(t.Len(), 1024, t.Len(), &d.ops.zero)
}

type zeroTask struct{ x any }

func (z *zeroTask) run(_, lo, hi int) {
	switch x := z.x.(type) {
	case []float32:
		clear(x[lo:hi])
	case []float64:
		clear(x[lo:hi])
	case []int32:
		clear(x[lo:hi])
	case []uint16:
		clear(x[lo:hi])
	default:
		panic(fmt.Sprintf("cpu: Zero: %T is not in host memory", x))
	}
}

// Copy converts when the types differ.
func (d *core[T]) Copy(dst, src *tensor.Tensor) {
	n := sameLen("Copy", dst, src)
	d.ops.copy = copyTask{dst.Data(), src.Data(), d.rows}
	d.team.split(n, 1024, n, &d.ops.copy)
}

type copyTask struct {
	dst, src any
	rows     *rowOps
}

func (c *copyTask) run(_, lo, hi int) {
	switch dst := c.dst.(type) {
	case []float32:
		switch src := c.src.(type) {
		case []float32:
			copy(dst[lo:hi], src[lo:hi])
			return
		case []float64:
			convert(dst[lo:hi], src[lo:hi])
			return
		case []uint16:
			c.rows.widen(dst[lo:hi], src[lo:hi])
			return
		}
	case []float64:
		switch src := c.src.(type) {
		case []float32:
			convert(dst[lo:hi], src[lo:hi])
			return
		case []float64:
			copy(dst[lo:hi], src[lo:hi])
			return
		case []uint16:
			fromBF16(dst[lo:hi], src[lo:hi])
			return
		}
	case []uint16:
		switch src := c.src.(type) {
		case []float32:
			c.rows.narrow(dst[lo:hi], src[lo:hi])
			return
		case []float64:
			toBF16(dst[lo:hi], src[lo:hi])
			return
		case []uint16:
			copy(dst[lo:hi], src[lo:hi])
			return
		}
	case []int32:
		if src, ok := c.src.([]int32); ok {
			copy(dst[lo:hi], src[lo:hi])
			return
		}
	}
	panic(fmt.Sprintf("cpu: Copy: no conversion from %T to %T", c.src, c.dst))
}

// widen is dst = src, exactly; narrow is dst = src to nearest even.
func (k *rowOps) widen(dst []float32, src []uint16) {
	if k == nil || k.fromBF16 == nil || len(src) == 0 {
		fromBF16(dst, src)
		return
	}
	k.fromBF16(&dst[0], &src[0], len(src))
}

func (k *rowOps) narrow(dst []uint16, src []float32) {
	if k == nil || k.toBF16 == nil || len(src) == 0 {
		toBF16(dst, src)
		return
	}
	k.toBF16(&dst[0], &src[0], len(src))
}

func convert[D, S float](dst []D, src []S) {
	for i, x := range src {
		dst[i] = D(x)
	}
}

func fromBF16[D float](dst []D, src []uint16) {
	for i, x := range src {
		dst[i] = D(math.Float32frombits(uint32(x) << 16))
	}
}

func toBF16[S float](dst []uint16, src []S) {
	for i, x := range src {
		dst[i] = bf16(float64(x))
	}
}

// bf16 rounds to nearest even straight from float64: rounding to float32 in between could move a tie.
// Rounding to odd first keeps the information which side of a tie the value was on.
func bf16(x float64) uint16 {
	if x != x {
		return 0x7fc0
	}
	f := float32(x)
	b := math.Float32bits(f)
	if back := float64(f); back != x && !math.IsInf(back, 0) && b&1 == 0 {
		// f is even and inexact: the odd neighbour on x's side stands for x.
		if (x > back) == (x > 0) {
			b++
		} else {
			b--
		}
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func (d *core[T]) Upload(dst *tensor.Tensor, src []float64) {
	d.Copy(dst, tensor.Of(tensor.F64, src, len(src)))
}

func (d *core[T]) UploadI32(dst *tensor.Tensor, src []int32) {
	demand(dst.Len() == len(src), "UploadI32", dst)
	copy(dst.I32(), src)
}

func (d *core[T]) Download(dst []float64, t *tensor.Tensor) {
	d.Copy(tensor.Of(tensor.F64, dst, len(dst)), t)
}
