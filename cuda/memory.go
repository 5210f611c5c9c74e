package cuda

import (
	"fmt"

	"triax/cuda/driver"
	"triax/tensor"
)

// storage is a stretch of the device's memory.
type storage struct {
	d     *Device
	p     driver.Pointer
	dtype tensor.DType
	n     int // elements
}

// Slice is a part of it.
func (s storage) Slice(lo, hi int) tensor.Storage {
	return storage{s.d, s.p + driver.Pointer(lo*s.dtype.Size()), s.dtype, hi - lo}
}

// DType is the type of its elements; a heap asks for it.
func (s storage) DType() tensor.DType { return s.dtype }

// Poison fills it with NaN, integers with a huge negative number. Memory that comes back when the device is closed is left alone.
func (s storage) Poison() {
	s.d.closing.RLock()
	defer s.d.closing.RUnlock()
	if s.n == 0 || s.d.closed {
		return
	}
	value := byte(0xff)
	if s.dtype == tensor.I32 {
		value = 0x80
	}
	s.d.owner.give(func(c *driver.Context) error { return c.Set(s.p, value, int64(s.n*s.dtype.Size())) })
}

// allocate is the heap's source.
func (d *Device) allocate(dtype tensor.DType, n int) any {
	s := storage{d: d, dtype: dtype, n: n}
	if n == 0 {
		return s
	}
	d.owner.must(fmt.Sprintf("%d %v", n, dtype), func(c *driver.Context) (err error) {
		if s.p, err = c.Alloc(int64(n * dtype.Size())); err == nil {
			d.blocks = append(d.blocks, s.p)
		}
		return err
	})
	return s
}

// on is where a tensor of this device is.
func (d *Device) on(op string, t *tensor.Tensor) driver.Pointer {
	s, ok := t.Data().(storage)
	if !ok || s.d != d {
		panic(fmt.Sprintf("cuda: %s: %v is not in the memory of %s", op, t, d.Name()))
	}
	return s.p
}

// Zero sets every element to 0, which is all bits 0 in every type.
func (d *Device) Zero(t *tensor.Tensor) {
	p, n := d.on("Zero", t), t.Bytes()
	if n > 0 {
		d.owner.give(func(c *driver.Context) error { return c.Set(p, 0, n) })
	}
}

var short = map[tensor.DType]string{tensor.F32: "f32", tensor.F64: "f64", tensor.BF16: "bf16"}

// Copy converts when the types differ.
func (d *Device) Copy(dst, src *tensor.Tensor) {
	n := sameLen("Copy", dst, src)
	to, from := d.on("Copy", dst), d.on("Copy", src)
	switch {
	case n == 0:
	case dst.DType == src.DType:
		d.owner.give(func(c *driver.Context) error { return c.Move(to, from, src.Bytes()) })
	default:
		demand(short[dst.DType] != "" && short[src.DType] != "", "Copy", dst, src)
		d.flat("copy_"+short[src.DType]+"_"+short[dst.DType], tensor.F32, n, dst, src, n)
	}
}
