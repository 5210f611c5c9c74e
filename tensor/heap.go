package tensor

import (
	"fmt"
	"math"
	"sync"
)

// Kind says what a tensor is for; the memory ledger adds up by kind.
type Kind uint8

const (
	Parameters  Kind = iota // weights
	Gradients               // accumulated gradients
	Optimizer               // moments and master copies
	Activations             // what forward keeps for backward, and what travels between layers
	Workspace               // scratch memory inside one operation
	Buffers                 // communication: buckets, gathered parameters
	Inputs                  // tokens, targets, positions
	NumKinds    = int(Inputs) + 1
)

var kindNames = [NumKinds]string{"parameters", "gradients", "optimizer", "activations", "workspace", "buffers", "inputs"}

// String is the kind's name in reports.
func (k Kind) String() string { return kindNames[k] }

// Usage is the memory of one kind, in bytes.
type Usage struct{ Now, Peak int64 }

// Heap hands out one rank's memory and keeps its ledger. Memory that comes back is kept and handed
// out again for the same type and number of elements, so a training step settles into allocating
// nothing. A Heap may be used by several goroutines.
type Heap struct {
	source func(DType, int) any
	poison bool

	mu    sync.Mutex
	free  map[slot][]any
	usage [NumKinds]Usage
	total Usage
	fresh int64
}

type slot struct {
	dtype DType
	n     int
}

// NewHeap makes a heap. source makes raw memory of n elements, zeroed or not; nil means Go slices.
// With poison, memory handed out is filled with NaN (int32: a huge negative number) in place of
// whatever was there, so that a read of memory never written, or already given back, is seen.
func NewHeap(source func(d DType, n int) any, poison bool) *Heap {
	if source == nil {
		source = goSlice
	}
	return &Heap{source: source, poison: poison, free: map[slot][]any{}}
}

func goSlice(d DType, n int) any {
	switch d {
	case F64:
		return make([]float64, n)
	case I32:
		return make([]int32, n)
	case BF16:
		return make([]uint16, n)
	default:
		return make([]float32, n)
	}
}

// New returns a tensor with one reference. Its elements are undefined.
func (h *Heap) New(kind Kind, dtype DType, shape ...int) *Tensor {
	n := Elements(shape...)
	if n < 0 {
		panic(fmt.Sprintf("tensor: shape %v", shape))
	}
	s := slot{dtype, n}
	bytes := int64(n) * int64(dtype.Size())
	h.mu.Lock()
	var data any
	if list := h.free[s]; len(list) > 0 {
		data = list[len(list)-1]
		h.free[s] = list[:len(list)-1]
	}
	if data == nil {
		h.fresh += bytes
	}
	h.account(kind, bytes)
	h.mu.Unlock()
	if data == nil {
		data = h.source(dtype, n)
	}
	if h.poison {
		fillPoison(data)
	}
	b := &block{heap: h, kind: kind, bytes: bytes, n: n, data: data}
	b.refs.Store(1)
	return &Tensor{Shape: append([]int(nil), shape...), DType: dtype, data: data, base: b}
}

func (h *Heap) account(kind Kind, bytes int64) {
	for _, u := range []*Usage{&h.usage[kind], &h.total} {
		u.Now += bytes
		u.Peak = max(u.Peak, u.Now)
	}
}

func (h *Heap) release(b *block) {
	if h.poison {
		fillPoison(b.data)
	}
	d := F32
	switch v := b.data.(type) {
	case []float64:
		d = F64
	case []int32:
		d = I32
	case []uint16:
		d = BF16
	case interface{ DType() DType }:
		d = v.DType()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.account(b.kind, -b.bytes)
	h.free[slot{d, b.n}] = append(h.free[slot{d, b.n}], b.data)
}

// Adopt moves the account of t's memory to this heap and kind: what a receiver does with a tensor
// whose ownership another rank of the same process has handed over.
func (h *Heap) Adopt(t *Tensor, kind Kind) {
	b := t.base
	if b == nil {
		return
	}
	old := b.heap
	old.mu.Lock()
	old.account(b.kind, -b.bytes)
	old.mu.Unlock()
	h.mu.Lock()
	b.heap, b.kind = h, kind
	h.account(kind, b.bytes)
	h.mu.Unlock()
}

// Usage is the memory in use and its peak, for one kind.
func (h *Heap) Usage(k Kind) Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.usage[k]
}

// Total is the memory in use and the peak of the sum over all kinds.
func (h *Heap) Total() Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}

// Fresh is the bytes ever asked of the source: it stops growing when a run has settled.
func (h *Heap) Fresh() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fresh
}

// ResetPeak sets every peak to the memory in use now.
func (h *Heap) ResetPeak() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.usage {
		h.usage[i].Peak = h.usage[i].Now
	}
	h.total.Peak = h.total.Now
}

func fillPoison(data any) {
	switch d := data.(type) {
	case interface{ Poison() }:
		d.Poison()
	case []float32:
		for i := range d {
			d[i] = float32(math.NaN())
		}
	case []float64:
		for i := range d {
			d[i] = math.NaN()
		}
	case []int32:
		for i := range d {
			d[i] = math.MinInt32
		}
	case []uint16:
		for i := range d {
			d[i] = 0x7fc0
		}
	}
}
