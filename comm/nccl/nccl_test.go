//go:build cgo && linux

package nccl

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"triax/comm/commtest"
	"triax/cuda/driver"
	"triax/cuda/nccl"
	"triax/cuda/nccl/fake"
	"triax/tensor"
)

// library is the one that stands in.
var library struct {
	*nccl.Library
	streams *fake.Streams
	err     error
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "nccl")
	if err != nil {
		panic(err)
	}
	path, err := fake.Build(dir)
	if err == nil {
		library.Library, err = nccl.Load([]string{path})
	}
	if err == nil {
		library.streams, err = fake.OpenStreams(path)
	}
	library.err = err
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// host is this process's memory as a device; kernels of one number share a thread, those of -1 do not.
type host struct{ number int }

func (h host) Bind() error         { return nil }
func (h host) Mark() (Mark, error) { return now{}, nil } // the host's work is done when it is given

func (h host) Address(t *tensor.Tensor) (driver.Pointer, bool) {
	var p unsafe.Pointer
	switch d := t.Data().(type) {
	case []float32:
		p = unsafe.Pointer(unsafe.SliceData(d))
	case []float64:
		p = unsafe.Pointer(unsafe.SliceData(d))
	case []int32:
		p = unsafe.Pointer(unsafe.SliceData(d))
	case []uint16:
		p = unsafe.Pointer(unsafe.SliceData(d))
	default:
		return 0, false
	}
	return driver.Pointer(uintptr(p)), true
}

var words sync.Map // keeps scratch memory

func (h host) Scratch(n int) (driver.Pointer, error) {
	b := make([]uint64, (n+7)/8)
	words.Store(&b[0], b)
	return driver.Pointer(uintptr(unsafe.Pointer(&b[0]))), nil
}

func (h host) Stream() (Stream, error) { return stream(library.streams.New(h.number)), nil }

type now struct{}

func (now) Reached() (bool, error) { return true, nil }

type stream uintptr

func (s stream) Handle() uintptr  { return uintptr(s) }
func (s stream) After(Mark) error { return nil }
func (s stream) Mark() (Mark, error) {
	return point{s, library.streams.Given(uintptr(s))}, nil
}

func (s stream) Close() error {
	library.streams.End(uintptr(s))
	return nil
}

type point struct {
	s stream
	n int
}

func (p point) Reached() (bool, error) { return library.streams.Done(uintptr(p.s)) >= p.n, nil }

var devices atomic.Int64

// worlds opens worlds of ranks in this process. serial devices run one kernel at a time.
func worlds(serial, inOrder bool) commtest.Open {
	return func(t *testing.T, size int) []commtest.Rank {
		t.Helper()
		all := opened(t, size, serial, inOrder)
		ranks := make([]commtest.Rank, size)
		for i, w := range all {
			mem := commtest.Host()
			ranks[i] = commtest.Rank{Wire: w.Transport(mem.Heap()), Mem: mem}
		}
		return ranks
	}
}

func opened(t *testing.T, size int, serial, inOrder bool) []*World {
	t.Helper()
	if errors.Is(library.err, fake.ErrNoCompiler) && os.Getenv("TRIAX_EMU") == "" {
		t.Skipf("SKIPPED: %v", library.err)
	}
	if library.err != nil {
		t.Fatal(library.err)
	}
	hub, err := Listen(t.Context(), "127.0.0.1:0", size)
	if err != nil {
		t.Fatal(err)
	}
	all, errs := make([]*World, size), make([]error, size)
	each(size, func(i int) {
		d := host{-1}
		if serial {
			d.number = int(devices.Add(1))
		}
		all[i], errs[i] = Open(t.Context(), Options{Rank: i, Size: size, Hub: hub.Address(), Library: library.Library, Device: d, InOrder: inOrder, Patience: 20 * time.Second})
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		each(size, func(i int) { errs[i] = all[i].Close() })
		if err := errors.Join(errors.Join(errs...), hub.Close()); err != nil {
			t.Error(err)
		}
	})
	return all
}

// each runs f for every rank at once.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// TestConformance: where kernels of a device run beside each other, and where they run one at a time.
func TestConformance(t *testing.T) {
	commtest.Run(t, worlds(false, false), tensor.F32, tensor.F64, tensor.BF16)
}

func TestConformanceSerial(t *testing.T) {
	commtest.Run(t, worlds(true, false), tensor.F32, tensor.F64, tensor.BF16)
}

// TestInOrder: without the hub between them, collectives and messages are the same.
func TestInOrder(t *testing.T) {
	commtest.RunCollectives(t, worlds(true, true), tensor.F32, tensor.F64, tensor.BF16)
	commtest.RunMessages(t, worlds(true, true))
}
