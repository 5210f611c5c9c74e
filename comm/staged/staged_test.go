package staged_test

import (
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"triax/comm"
	"triax/comm/commtest"
	"triax/comm/local"
	"triax/comm/staged"
	"triax/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is memory that only its owner reads: host memory behind a type that no transport knows.
type far struct{ near *tensor.Tensor }

func (f far) Slice(lo, hi int) tensor.Storage { return far{f.near.Flat(lo, hi)} }
func (f far) DType() tensor.DType             { return f.near.DType }

// device is a device of such memory.
type device struct {
	tensor.Memory // of the host
	heap          *tensor.Heap
	broken        error
}

func newDevice() *device {
	d := &device{Memory: commtest.Host()}
	d.heap = tensor.NewHeap(func(dtype tensor.DType, n int) any { return far{d.Memory.Heap().New(tensor.Buffers, dtype, n)} }, false)
	return d
}

func (d *device) Heap() *tensor.Heap { return d.heap }

func (d *device) New(kind tensor.Kind, shape ...int) *tensor.Tensor {
	return d.heap.New(kind, d.Float(), shape...)
}

func inside(t *tensor.Tensor) *tensor.Tensor { return t.Data().(far).near }

func (d *device) Zero(t *tensor.Tensor)                     { d.Memory.Zero(inside(t)) }
func (d *device) Copy(dst, src *tensor.Tensor)              { d.Memory.Copy(inside(dst), inside(src)) }
func (d *device) Upload(dst *tensor.Tensor, src []float64)  { d.Memory.Upload(inside(dst), src) }
func (d *device) UploadI32(dst *tensor.Tensor, src []int32) { d.Memory.UploadI32(inside(dst), src) }
func (d *device) Download(dst []float64, t *tensor.Tensor)  { d.Memory.Download(dst, inside(t)) }

func (d *device) Fetch(host, t *tensor.Tensor) error { return d.move(host, inside(t)) }
func (d *device) Place(t, host *tensor.Tensor) error { return d.move(inside(t), host) }

func (d *device) move(dst, src *tensor.Tensor) error {
	if dst.DType != src.DType || dst.Len() != src.Len() {
		return fmt.Errorf("copy of %v to %v", src, dst)
	}
	switch to := dst.Data().(type) {
	case []float32:
		copy(to, src.F32())
	case []float64:
		copy(to, src.F64())
	case []int32:
		copy(to, src.I32())
	case []uint16:
		copy(to, tensor.Slice[uint16](src))
	}
	return d.broken
}

func open(t *testing.T, size int) []commtest.Rank {
	w := local.New(size)
	t.Cleanup(w.Close)
	ranks := make([]commtest.Rank, size)
	for i := range ranks {
		d := newDevice()
		ranks[i] = commtest.Rank{Mem: d, Wire: staged.New(d, func(h *tensor.Heap) comm.Transport { return w.Rank(i, h) })}
	}
	return ranks
}

func TestConformance(t *testing.T) { commtest.Run(t, open, tensor.F32, tensor.F64, tensor.BF16) }

// TestBroken: a device that cannot copy ends every call with its own words, and nothing is kept.
func TestBroken(t *testing.T) {
	ranks := open(t, 2)
	d := ranks[0].Mem.(*device)
	d.broken = errors.New("the device has fallen off the bus")
	x := d.New(tensor.Buffers, 3)
	if _, err := ranks[0].Wire.Send(t.Context(), 1, comm.Tag{}, x).Wait(t.Context()); !errors.Is(err, d.broken) {
		t.Errorf("send: %v", err)
	}
	ranks[1].Wire.Send(t.Context(), 0, comm.Tag{}, ranks[1].Mem.New(tensor.Buffers, 3))
	if _, _, err := ranks[0].Wire.Recv(t.Context(), 1, comm.Tag{}, comm.Spec{DType: d.Float(), Shape: []int{3}}); !errors.Is(err, d.broken) {
		t.Errorf("receive: %v", err)
	}
	g, err := ranks[0].Wire.Join(t.Context(), "mine", []int{0})
	if err != nil {
		t.Fatal(err)
	}
	y := d.New(tensor.Buffers, 3)
	if _, err := g.AllReduce(t.Context(), y, comm.Sum); !errors.Is(err, d.broken) {
		t.Errorf("sum: %v", err)
	}
	y.Release()
	if now := d.heap.Total().Now; now != 0 {
		t.Errorf("%d bytes never given back", now)
	}
}
