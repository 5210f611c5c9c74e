package tensor

import (
	"fmt"
	"sync/atomic"
)

// Tensor is a dense, contiguous, row-major array on some device.
//
// Tensors are counted: New returns one with one reference, Retain adds one, Release drops one, and
// with the last the memory goes back to the heap it came from. Views share the count of their base.
// A function that "takes over" a tensor releases it, or passes the reference on.
type Tensor struct {
	Shape []int // product = Len
	DType DType

	data any    // []float32, []float64, []int32, []uint16, or a device's own Storage
	base *block // nil for memory that no heap owns
}

// Storage is memory that is not a Go slice, such as a GPU's.
type Storage interface {
	// Slice is the part from element lo up to hi.
	Slice(lo, hi int) Storage
}

// block is what all views of one allocation share.
type block struct {
	refs  atomic.Int32
	heap  *Heap
	kind  Kind
	bytes int64
	n     int
	data  any
}

// Of wraps a slice ([]float32, []float64, []int32, []uint16) or Storage that no heap owns.
// Retain and Release do nothing on it.
func Of(dtype DType, data any, shape ...int) *Tensor {
	t := &Tensor{Shape: append([]int(nil), shape...), DType: dtype, data: data}
	if n := hostLen(data); n >= 0 && n != t.Len() {
		panic(fmt.Sprintf("tensor: %d elements for shape %v", n, shape))
	}
	return t
}

func hostLen(data any) int {
	switch d := data.(type) {
	case []float32:
		return len(d)
	case []float64:
		return len(d)
	case []int32:
		return len(d)
	case []uint16:
		return len(d)
	}
	return -1
}

// Len is the number of elements.
func (t *Tensor) Len() int { return Elements(t.Shape...) }

// Bytes is the size of the elements.
func (t *Tensor) Bytes() int64 { return int64(t.Len()) * int64(t.DType.Size()) }

// Elements is the product of the dims; 1 for none.
func Elements(shape ...int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Data is the raw memory: a Go slice, or the device's Storage.
func (t *Tensor) Data() any { return t.data }

// F32 is the memory of a float32 tensor in host memory; it panics for any other.
func (t *Tensor) F32() []float32 { return Slice[float32](t) }

// F64 is the memory of a float64 tensor in host memory; it panics for any other.
func (t *Tensor) F64() []float64 { return Slice[float64](t) }

// I32 is the memory of an int32 tensor in host memory; it panics for any other.
func (t *Tensor) I32() []int32 { return Slice[int32](t) }

// Slice is the memory of a tensor in host memory; it panics when T is not the tensor's type.
func Slice[T any](t *Tensor) []T {
	s, ok := t.data.([]T)
	if !ok {
		panic(fmt.Sprintf("tensor: %v holds %T", t, t.data))
	}
	return s
}

// View is the same memory in another shape with the same number of elements.
// It holds no reference of its own.
func (t *Tensor) View(shape ...int) *Tensor {
	if Elements(shape...) != t.Len() {
		panic(fmt.Sprintf("tensor: view %v of %v", shape, t.Shape))
	}
	return &Tensor{Shape: append([]int(nil), shape...), DType: t.DType, data: t.data, base: t.base}
}

// Part is elements lo up to hi of the flat memory, in the given shape.
// It holds no reference of its own.
func (t *Tensor) Part(lo, hi int, shape ...int) *Tensor {
	if lo < 0 || hi > t.Len() || lo > hi || Elements(shape...) != hi-lo {
		panic(fmt.Sprintf("tensor: part %d..%d as %v of %v", lo, hi, shape, t.Shape))
	}
	p := &Tensor{Shape: append([]int(nil), shape...), DType: t.DType, base: t.base}
	switch d := t.data.(type) {
	case []float32:
		p.data = d[lo:hi:hi]
	case []float64:
		p.data = d[lo:hi:hi]
	case []int32:
		p.data = d[lo:hi:hi]
	case []uint16:
		p.data = d[lo:hi:hi]
	case Storage:
		p.data = d.Slice(lo, hi)
	default:
		panic(fmt.Sprintf("tensor: part of %T", t.data))
	}
	return p
}

// Flat is Part as one dim.
func (t *Tensor) Flat(lo, hi int) *Tensor { return t.Part(lo, hi, hi-lo) }

// Rows is rows lo up to hi of the first dim.
func (t *Tensor) Rows(lo, hi int) *Tensor {
	row := Elements(t.Shape[1:]...)
	return t.Part(lo*row, hi*row, append([]int{hi - lo}, t.Shape[1:]...)...)
}

// Retain adds a reference and returns t.
func (t *Tensor) Retain() *Tensor {
	if t.base != nil && t.base.refs.Add(1) <= 1 {
		panic(fmt.Sprintf("tensor: %v retained after its last release", t))
	}
	return t
}

// Release drops a reference; the last one gives the memory back. Release of nil does nothing.
func (t *Tensor) Release() {
	if t == nil || t.base == nil {
		return
	}
	switch n := t.base.refs.Add(-1); {
	case n == 0:
		t.base.heap.release(t.base)
	case n < 0:
		panic(fmt.Sprintf("tensor: %v released more often than retained", t))
	}
}

// String is the type and shape: "float32[4 8]".
func (t *Tensor) String() string { return fmt.Sprintf("%v%v", t.DType, t.Shape) }
