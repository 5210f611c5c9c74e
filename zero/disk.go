package zero

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"triax/tensor"
)

// Where optimizer state lies: Config.Offload.
const (
	OffloadNone = "none" // in the rank's memory
	OffloadDisk = "disk" // in files that are mapped into it, a window at a time
)

// Offloads lists them.
var Offloads = []string{OffloadNone, OffloadDisk}

// disk keeps optimizer state in files (the idea of ZeRO-Infinity; Rajbhandari et al. 2021, §5.1.3, with the system's page cache in place of a pool of
// buffers). A file is reserved whole when it is made, so that a full disk is an error at the start and not a fault in some step; and it
// has no name, so nothing is left behind however the process ends.
//
//	file   | exp_avg of bucket 0 .................. |
//	memory        | window |                          mapped, updated, and dropped again
type disk struct {
	dir   string
	files []mapped
	bytes int64
}

// mapped is a file as memory.
type mapped struct {
	raw    []byte
	tensor *tensor.Tensor
}

// window is the elements that an update works on at a time: what of the state is in memory at once is this much of each tensor.
const window = 1 << 20

// zeros makes a state tensor of n zero elements in a file.
func (d *disk) zeros(dtype tensor.DType, n int) (*tensor.Tensor, error) {
	f, err := os.CreateTemp(d.dir, "triax-state-*")
	if err != nil {
		return nil, fmt.Errorf("zero.offload: %w", err)
	}
	defer f.Close() // the mapping holds the file
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("zero.offload: %w", err)
	}
	size := n * dtype.Size()
	raw, err := mapFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("zero.offload: %d bytes of optimizer state in %s: %w", size, d.dir, err)
	}
	t := tensor.Of(dtype, slice(dtype, raw), n)
	d.files = append(d.files, mapped{raw, t})
	d.bytes += int64(size)
	return t, nil
}

// drop takes elements lo up to hi of a state tensor out of memory; they stay in the file. One that is in none, or nil, stays as it is.
func (d *disk) drop(t *tensor.Tensor, lo, hi int) error {
	for _, m := range d.files {
		if m.tensor == t {
			size := t.DType.Size()
			return dropPages(m.raw, lo*size, hi*size)
		}
	}
	return nil
}

func (d *disk) close() error {
	var errs []error
	for _, m := range d.files {
		errs = append(errs, unmapFile(m.raw))
	}
	d.files = nil
	return errors.Join(errs...)
}

// slice is raw memory as elements.
func slice(dtype tensor.DType, raw []byte) any {
	p := unsafe.Pointer(unsafe.SliceData(raw))
	if dtype == tensor.F64 {
		return unsafe.Slice((*float64)(p), len(raw)/8)
	}
	return unsafe.Slice((*float32)(p), len(raw)/4)
}

// Offloaded is the bytes of optimizer state that this rank keeps in files.
func (o *Optimizer) Offloaded() int64 {
	if o.disk == nil {
		return 0
	}
	return o.disk.bytes
}

// newState makes a tensor of optimizer state, or a master copy, of n zeros.
func (o *Optimizer) newState(n int) (*tensor.Tensor, error) {
	if o.disk == nil {
		return o.zeros(tensor.Optimizer, o.accum(), n), nil
	}
	probe := o.dev.New(tensor.Workspace, 1)
	defer probe.Release()
	if _, onDevice := probe.Data().(tensor.Storage); onDevice {
		return nil, fmt.Errorf(`zero.offload = "disk": optimizer state of a %s device cannot be mapped from files; use "none"`, o.dev.Name())
	}
	return o.disk.zeros(o.accum(), n)
}
