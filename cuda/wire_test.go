//go:build cgo && linux

package cuda

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"triax/comm/commtest"
	wires "triax/comm/nccl"
	"triax/cuda/driver"
	"triax/cuda/nccl"
	"triax/cuda/nccl/fake"
	"triax/tensor"
)

// standIn is the library that moves data between ranks of this process, made once.
var standIn struct {
	once    sync.Once
	library *nccl.Library
	streams *fake.Streams
	err     error
}

func collective(t *testing.T) (*nccl.Library, *fake.Streams) {
	t.Helper()
	standIn.once.Do(func() {
		dir, err := os.MkdirTemp("", "nccl")
		if standIn.err = err; err != nil {
			return
		}
		defer os.RemoveAll(dir) // an open library does not need its file
		var path string
		if path, standIn.err = fake.Build(dir); standIn.err != nil {
			return
		}
		if standIn.library, standIn.err = nccl.Load([]string{path}); standIn.err == nil {
			standIn.streams, standIn.err = fake.OpenStreams(path)
		}
	})
	if standIn.err != nil {
		t.Fatal(standIn.err) // the emulator, which is there, needs the same compiler
	}
	return standIn.library, standIn.streams
}

// beside is an emulated device whose other streams are the stand-in's, which run beside it as a real device's do; the emulator's own do not.
type beside struct {
	wires.Device
	streams *fake.Streams
}

func (b beside) Stream() (wires.Stream, error) {
	return &besideStream{b.streams, b.streams.New(-1)}, nil
}

type besideStream struct {
	of *fake.Streams
	s  uintptr
}

func (s *besideStream) Handle() uintptr { return s.s }

// After waits for the device, as the stand-in's streams know nothing of its marks.
func (s *besideStream) After(m wires.Mark) error {
	for {
		if ok, err := m.Reached(); ok || err != nil {
			return err
		}
		time.Sleep(20 * time.Microsecond)
	}
}

func (s *besideStream) Mark() (wires.Mark, error) { return besideMark{s, s.of.Given(s.s)}, nil }

func (s *besideStream) Close() error {
	s.of.End(s.s)
	return nil
}

type besideMark struct {
	s *besideStream
	n int
}

func (m besideMark) Reached() (bool, error) { return m.s.of.Done(m.s.s) >= m.n, nil }

// wired opens worlds of emulated devices; own streams are the driver's.
func wired(own bool) commtest.Open {
	return func(t *testing.T, size int) []commtest.Rank {
		t.Helper()
		if onGPU() {
			t.Skip("SKIPPED: several ranks on one GPU, which NCCL refuses")
		}
		m := testMachine(t)
		library, streams := collective(t)
		hub, err := wires.Listen(t.Context(), "127.0.0.1:0", size)
		if err != nil {
			t.Fatal(err)
		}
		ranks, worlds, errs := make([]commtest.Rank, size), make([]*wires.World, size), make([]error, size)
		var all sync.WaitGroup
		for i := range size {
			d := testDevice(t, Options{Ordinal: i % emulatedDevices(t, m), Float: tensor.F32, Poison: true})
			all.Go(func() {
				var w wires.Device
				if w, errs[i] = d.Wire(); errs[i] != nil {
					return
				}
				if !own {
					w = beside{w, streams}
				}
				worlds[i], errs[i] = wires.Open(t.Context(), wires.Options{Rank: i, Size: size, Hub: hub.Address(), Library: library, Device: w, Patience: 20 * time.Second})
				if errs[i] == nil {
					ranks[i] = commtest.Rank{Wire: worlds[i].Transport(d.Heap()), Mem: d}
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // before the devices are closed
			for i, w := range worlds {
				all.Go(func() { errs[i] = w.Close() })
			}
			all.Wait()
			if err := errors.Join(errors.Join(errs...), hub.Close()); err != nil {
				t.Error(err)
			}
		})
		return ranks
	}
}

func emulatedDevices(t *testing.T, m *Machine) int {
	t.Helper()
	infos, err := m.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return len(infos)
}

// TestWire: devices' memory over NCCL passes the suite for transports.
func TestWire(t *testing.T) { commtest.Run(t, wired(false), tensor.F32, tensor.F64, tensor.BF16) }

// TestWireStreams: with the driver's own streams, where the emulator does everything at once.
func TestWireStreams(t *testing.T) { commtest.RunCollectives(t, wired(true), tensor.F32, tensor.BF16) }

// TestMarks: a mark is behind what the device was given, a stream takes it, and neither is asked for again.
func TestMarks(t *testing.T) {
	d := testDevice(t, Options{Float: tensor.F32})
	x := d.New(tensor.Buffers, 1000)
	defer x.Release()
	d.Zero(x)
	w, err := d.Wire()
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Stream()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m, err := w.Mark()
		if err == nil {
			err = s.After(m)
		}
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := m.Reached(); !ok || err != nil {
			t.Errorf("a mark that a stream waits for: %v, %v", ok, err)
		}
		over, err := s.Mark()
		for ok := false; !ok && err == nil; {
			ok, err = over.Reached()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if p, ok := w.Address(x); !ok || p == 0 || p != driver.Pointer(d.on("", x)) {
		t.Errorf("address %x, %v", p, ok)
	}
	if _, ok := w.Address(tensor.Of(tensor.F32, make([]float32, 3), 3)); ok {
		t.Error("host memory is taken for the device's")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
