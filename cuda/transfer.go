package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"triax/cuda/driver"
	"triax/tensor"
)

// Upload converts on the host, through pinned memory.
func (d *Device) Upload(dst *tensor.Tensor, src []float64) {
	demand(dst.Len() == len(src) && short[dst.DType] != "", "Upload", dst)
	d.filled(dst, func(b []byte, lo int) { narrow(b, src[lo:], dst.DType) })
}

// narrow sets the elements that b has room for.
func narrow(b []byte, src []float64, dtype tensor.DType) {
	words := binary.LittleEndian
	size := dtype.Size()
	for i := range len(b) / size {
		switch at := b[i*size:]; dtype {
		case tensor.F32:
			words.PutUint32(at, math.Float32bits(float32(src[i])))
		case tensor.F64:
			words.PutUint64(at, math.Float64bits(src[i]))
		case tensor.BF16:
			words.PutUint16(at, bf16(src[i]))
		}
	}
}

// UploadI32 sets an I32 tensor.
func (d *Device) UploadI32(dst *tensor.Tensor, src []int32) {
	demand(dst.Len() == len(src) && dst.DType == tensor.I32, "UploadI32", dst)
	d.filled(dst, func(b []byte, lo int) { copy(b, raw(src[lo:])) })
}

// Download converts on the host.
func (d *Device) Download(dst []float64, t *tensor.Tensor) {
	demand(t.Len() == len(dst) && short[t.DType] != "", "Download", t)
	if err := d.seen(t, func(b []byte, lo int) { widen(dst[lo:], b, t.DType) }); err != nil {
		panic(fmt.Errorf("cuda: download: %w", err))
	}
}

func widen(dst []float64, b []byte, dtype tensor.DType) {
	words := binary.LittleEndian
	size := dtype.Size()
	for i := range len(b) / size {
		switch at := b[i*size:]; dtype {
		case tensor.F32:
			dst[i] = float64(math.Float32frombits(words.Uint32(at)))
		case tensor.F64:
			dst[i] = math.Float64frombits(words.Uint64(at))
		case tensor.BF16:
			dst[i] = float64(math.Float32frombits(uint32(words.Uint16(at)) << 16))
		}
	}
}

// Fetch copies t into host memory of its type and length, after the work given before. Any goroutine may call it.
func (d *Device) Fetch(host, t *tensor.Tensor) error {
	demand(host.DType == t.DType && host.Len() == t.Len(), "Fetch", host, t)
	b := bytesOf(host)
	return d.seen(t, func(part []byte, lo int) { copy(b[lo*t.DType.Size():], part) })
}

// Place copies host memory into t. Any goroutine may call it.
func (d *Device) Place(t, host *tensor.Tensor) error {
	demand(host.DType == t.DType && host.Len() == t.Len(), "Place", t, host)
	b := bytesOf(host)
	return d.fill(t, func(part []byte, lo int) { copy(part, b[lo*t.DType.Size():]) })
}

// bytesOf is a host tensor's memory.
func bytesOf(t *tensor.Tensor) []byte {
	switch data := t.Data().(type) {
	case []float32:
		return raw(data)
	case []float64:
		return raw(data)
	case []int32:
		return raw(data)
	case []uint16:
		return raw(data)
	}
	panic(fmt.Sprintf("cuda: %v is not in host memory", t))
}

func raw[T float32 | float64 | int32 | uint16](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(*new(T))))
}

// filled is fill where the caller takes no error.
func (d *Device) filled(t *tensor.Tensor, set func(b []byte, lo int)) {
	if err := d.fill(t, set); err != nil {
		panic(fmt.Errorf("cuda: upload: %w", err))
	}
}

// fill sets t by stretches of the pinned memory; set fills b with the elements from lo on.
func (d *Device) fill(t *tensor.Tensor, set func(b []byte, lo int)) error {
	p, size, n := d.on("Upload", t), t.DType.Size(), t.Len()
	return d.owner.wait(func(c *driver.Context) error {
		each := len(d.staging) / size
		for lo := 0; lo < n; lo += each {
			if d.inFlight {
				if err := c.Sync(); err != nil {
					return err
				}
			}
			b := d.staging[:(min(n, lo+each)-lo)*size]
			set(b, lo)
			d.inFlight = true
			if err := c.CopyIn(p+driver.Pointer(lo*size), b); err != nil {
				return err
			}
		}
		return nil
	})
}

// seen shows t's memory a stretch at a time, each with the number of its first element.
func (d *Device) seen(t *tensor.Tensor, see func(b []byte, lo int)) error {
	p, size, n := d.on("Download", t), t.DType.Size(), t.Len()
	return d.owner.wait(func(c *driver.Context) error {
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
