package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

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

// Upload converts on the host, through pinned memory.
func (d *Device) Upload(dst *tensor.Tensor, src []float64) {
	demand(dst.Len() == len(src), "Upload", dst)
	size := dst.DType.Size()
	d.upload(dst, func(room []byte, i int) {
		switch at := room[i%(len(room)/size)*size:]; dst.DType {
		case tensor.F32:
			binary.LittleEndian.PutUint32(at, math.Float32bits(float32(src[i])))
		case tensor.F64:
			binary.LittleEndian.PutUint64(at, math.Float64bits(src[i]))
		case tensor.BF16:
			binary.LittleEndian.PutUint16(at, bf16(src[i]))
		default:
			wrongShapes("Upload", dst)
		}
	})
}

// UploadI32 sets an I32 tensor.
func (d *Device) UploadI32(dst *tensor.Tensor, src []int32) {
	demand(dst.Len() == len(src) && dst.DType == tensor.I32, "UploadI32", dst)
	d.upload(dst, func(room []byte, i int) {
		binary.LittleEndian.PutUint32(room[i%(len(room)/4)*4:], uint32(src[i]))
	})
}

// upload fills dst by stretches of the staging memory; set writes element i of all into its place in one.
func (d *Device) upload(dst *tensor.Tensor, set func(room []byte, i int)) {
	p, size, n := d.on("Upload", dst), dst.DType.Size(), dst.Len()
	d.owner.must("upload", func(c *driver.Context) error {
		each := len(d.staging) / size
		for lo := 0; lo < n; lo += each {
			if d.inFlight {
				if err := c.Sync(); err != nil {
					return err
				}
			}
			hi := min(n, lo+each)
			for i := lo; i < hi; i++ {
				set(d.staging, i)
			}
			d.inFlight = true
			if err := c.CopyIn(p+driver.Pointer(lo*size), d.staging[:(hi-lo)*size]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Download converts on the host.
func (d *Device) Download(dst []float64, t *tensor.Tensor) {
	demand(t.Len() == len(dst) && short[t.DType] != "", "Download", t)
	d.bytes(t, func(b []byte, lo int) {
		size := t.DType.Size()
		for i := range len(b) / size {
			switch at := b[i*size:]; t.DType {
			case tensor.F32:
				dst[lo+i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(at)))
			case tensor.F64:
				dst[lo+i] = math.Float64frombits(binary.LittleEndian.Uint64(at))
			case tensor.BF16:
				dst[lo+i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(at)) << 16))
			}
		}
	})
}

// bytes shows t's memory a stretch at a time, each with the number of its first element.
func (d *Device) bytes(t *tensor.Tensor, see func(b []byte, lo int)) {
	p, size, n := d.on("Download", t), t.DType.Size(), t.Len()
	d.owner.must("download", func(c *driver.Context) error {
		each := len(d.staging) / size
		for lo := 0; lo < n; lo += each {
			b := d.staging[:(min(n, lo+each)-lo)*size]
			if err := c.CopyOut(b, p+driver.Pointer(lo*size)); err != nil {
				return err
			}
			if err := c.Sync(); err != nil { // after it nothing else uses staging either
				return err
			}
			d.inFlight = false
			see(b, lo)
		}
		return nil
	})
}

// bf16 rounds to nearest even straight from float64, see bf16_of_double in kernels/copy.cu.
func bf16(x float64) uint16 {
	if x != x {
		return 0x7fc0
	}
	f := float32(x)
	b := math.Float32bits(f)
	if back := float64(f); back != x && !math.IsInf(back, 0) && b&1 == 0 {
		if (x > back) == (x > 0) {
			b++
		} else {
			b--
		}
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
