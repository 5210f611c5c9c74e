package cpu

import (
	"sync"
	"unsafe"

	"triax/tensor"
)

const (
	hugePage   = 2 << 20
	arenaBytes = 32 << 20
	line       = 64 // bytes of a cache line, and of a full vector
)

// arenas is a source of memory for a tensor.Heap: tensors are cut from large blocks that ask the system
// for huge pages. The first touch of an ordinary page costs more than the arithmetic done on it,
// on virtual machines above all. Blocks are ordinary Go memory, freed when nothing points into them.
type arenas struct {
	mu   sync.Mutex
	rest []byte
}

func (a *arenas) take(d tensor.DType, n int) any {
	raw := a.bytes((n*d.Size() + line - 1) / line * line)
	p := unsafe.Pointer(unsafe.SliceData(raw))
	switch d {
	case tensor.F64:
		return unsafe.Slice((*float64)(p), n)
	case tensor.I32:
		return unsafe.Slice((*int32)(p), n)
	case tensor.BF16:
		return unsafe.Slice((*uint16)(p), n)
	}
	return unsafe.Slice((*float32)(p), n)
}

func (a *arenas) bytes(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > len(a.rest) {
		if n >= arenaBytes/4 {
			return hugeBlock(n)[:n]
		}
		a.rest = hugeBlock(arenaBytes)
	}
	b := a.rest[:n:n]
	a.rest = a.rest[n:]
	if n == 0 {
		b = make([]byte, 1)[:0]
	}
	return b
}

// hugeBlock is at least n bytes starting at a huge page's edge. As float64, so that the garbage
// collector knows that there are no pointers in it.
func hugeBlock(n int) []byte {
	size := (n + hugePage - 1) / hugePage * hugePage
	raw := make([]float64, (size+hugePage)/8)
	base := unsafe.Pointer(unsafe.SliceData(raw))
	skip := (hugePage - int(uintptr(base)%hugePage)) % hugePage
	b := unsafe.Slice((*byte)(unsafe.Add(base, skip)), size)
	adviseHuge(b)
	return b
}
