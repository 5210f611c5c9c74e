package cuda

import (
	"triax/comm/nccl"
	"triax/cuda/driver"
	"triax/tensor"
)

var (
	_ nccl.Device = (*wire)(nil)
	_ nccl.Stream = (*side)(nil)
)

// Wire is the device as a transport over NCCL uses it: its memory, and streams beside the one it computes on.
func (d *Device) Wire() (nccl.Device, error) {
	w := &wire{d: d}
	err := d.owner.wait(func(c *driver.Context) error {
		w.c = c
		return nil
	})
	return w, err
}

type wire struct {
	d *Device
	c *driver.Context
}

func (w *wire) Bind() error { return w.c.Current() }

func (w *wire) Address(t *tensor.Tensor) (driver.Pointer, bool) {
	s, ok := t.Data().(storage)
	return s.p, ok && s.d == w.d
}

// Scratch is held until the device is closed.
func (w *wire) Scratch(n int) (p driver.Pointer, err error) {
	err = w.d.owner.wait(func(c *driver.Context) (err error) {
		if p, err = c.Alloc(int64(n)); err == nil {
			w.d.blocks = append(w.d.blocks, p)
		}
		return err
	})
	return p, err
}

// Mark is behind all that the device has been given to compute.
func (w *wire) Mark() (nccl.Mark, error) {
	m := &mark{c: w.c}
	err := w.d.owner.wait(func(c *driver.Context) (err error) {
		if m.e, err = c.NewEvent(); err == nil {
			err = c.Record(m.e)
		}
		return err
	})
	return m, err
}

func (w *wire) Stream() (nccl.Stream, error) {
	s, err := w.c.NewStream()
	return &side{w.c, s}, err
}

// mark is an event, until it has been reached or a stream waits for it: then it is not needed any more.
type mark struct {
	c    *driver.Context
	e    driver.Event
	over bool
}

func (m *mark) Reached() (bool, error) {
	if m.over {
		return true, nil
	}
	ok, err := m.c.Passed(m.e)
	if ok && err == nil {
		m.over, err = true, m.c.Forget(m.e)
	}
	return ok, err
}

// side is a stream beside the device's own.
type side struct {
	c *driver.Context
	s *driver.Stream
}

func (s *side) Handle() uintptr { return s.s.Handle() }
func (s *side) Close() error    { return s.s.Close() }

func (s *side) After(at nccl.Mark) error {
	m := at.(*mark) // of Wire, as all marks of this device
	if m.over {
		return nil
	}
	if err := s.s.After(m.e); err != nil {
		return err
	}
	m.over = true
	return m.c.Forget(m.e)
}

func (s *side) Mark() (nccl.Mark, error) {
	m := &mark{c: s.c}
	var err error
	if m.e, err = s.c.NewEvent(); err == nil {
		err = s.s.Record(m.e)
	}
	return m, err
}
