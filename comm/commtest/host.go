package commtest

import (
	"fmt"
	"math"

	"triax/tensor"
)

// Host is memory of plain Go slices, for transports between ranks on CPUs. Its heap poisons.
func Host() tensor.Memory { return &host{tensor.NewHeap(nil, true)} }

type host struct{ heap *tensor.Heap }

func (h *host) Name() string          { return "host" }
func (h *host) Float() tensor.DType   { return tensor.F32 }
func (h *host) Heap() *tensor.Heap    { return h.heap }
func (h *host) Sync() error           { return nil }
func (h *host) Close()                {}
func (h *host) Zero(t *tensor.Tensor) { h.Upload(t, make([]float64, t.Len())) }

func (h *host) New(kind tensor.Kind, shape ...int) *tensor.Tensor {
	return h.heap.New(kind, tensor.F32, shape...)
}

func (h *host) Copy(dst, src *tensor.Tensor) {
	values := make([]float64, src.Len())
	h.Download(values, src)
	h.Upload(dst, values)
}

func (h *host) Upload(dst *tensor.Tensor, src []float64) {
	if dst.Len() != len(src) {
		panic(fmt.Sprintf("commtest: upload of %d values to %v", len(src), dst))
	}
	switch d := dst.Data().(type) {
	case []float32:
		for i, x := range src {
			d[i] = float32(x)
		}
	case []float64:
		copy(d, src)
	case []uint16: // cut off, not rounded: checks use values that bfloat16 holds
		for i, x := range src {
			d[i] = uint16(math.Float32bits(float32(x)) >> 16)
		}
	default:
		panic(fmt.Sprintf("commtest: upload to %v", dst))
	}
}

func (h *host) UploadI32(dst *tensor.Tensor, src []int32) { copy(dst.I32(), src) }

func (h *host) Download(dst []float64, t *tensor.Tensor) {
	switch d := t.Data().(type) {
	case []float32:
		for i, x := range d {
			dst[i] = float64(x)
		}
	case []float64:
		copy(dst, d)
	case []uint16:
		for i, x := range d {
			dst[i] = float64(math.Float32frombits(uint32(x) << 16))
		}
	default:
		panic(fmt.Sprintf("commtest: download of %v", t))
	}
}
