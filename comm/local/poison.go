package local

import (
	"fmt"
	"math"
	"slices"

	"triax/tensor"
)

// sealed is a message under the Copied option: what was sent, beside the sender's memory, poisoned.
type sealed struct {
	data     any
	original *tensor.Tensor
}

// seal copies a message and poisons the original.
func seal(t *tensor.Tensor) *sealed {
	switch d := t.Data().(type) {
	case []float32:
		return &sealed{take(d, float32(math.NaN())), t}
	case []float64:
		return &sealed{take(d, math.NaN()), t}
	case []int32:
		return &sealed{take(d, math.MinInt32), t}
	case []uint16:
		return &sealed{take(d, 0x7fc0), t}
	}
	panic(fmt.Sprintf("local: %v is not this process's memory", t))
}

func take[T any](from []T, poison T) []T {
	c := make([]T, len(from))
	copy(c, from)
	for i := range from {
		from[i] = poison
	}
	return c
}

// open gives the sender's memory back, or says that the sender has written to it.
func (s *sealed) open(to *tensor.Tensor) error {
	t := s.original
	defer t.Release()
	at := -1
	switch d := t.Data().(type) {
	case []float32:
		copy(to.F32(), s.data.([]float32))
		at = slices.IndexFunc(d, func(x float32) bool { return x == x })
	case []float64:
		copy(to.F64(), s.data.([]float64))
		at = slices.IndexFunc(d, func(x float64) bool { return x == x })
	case []int32:
		copy(to.I32(), s.data.([]int32))
		at = slices.IndexFunc(d, func(x int32) bool { return x != math.MinInt32 })
	case []uint16:
		copy(tensor.Slice[uint16](to), s.data.([]uint16))
		at = slices.IndexFunc(d, func(x uint16) bool { return x != 0x7fc0 })
	}
	if at >= 0 {
		return fmt.Errorf("element %d of %v was written to after it had been sent", at, t)
	}
	return nil
}
