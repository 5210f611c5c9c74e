package cuda

import (
	"fmt"
	"sync"

	"triax/cuda/driver"
	"triax/tensor"
)

// Options says how a device is made.
type Options struct {
	Ordinal int          // which of the machine's devices
	Float   tensor.DType // F32, or BF16: parameters and activations of two bytes, sums in float32
	Poison  bool         // memory handed out is filled with NaN, see tensor.NewHeap
}

const (
	workspaceBytes = 32 << 20 // of the matrix library; what NVIDIA recommends for its newest devices
	stagingBytes   = 1 << 20
)

// Device computes on a GPU. It implements tensor.Device.
type Device struct {
	opts    Options
	machine *Machine
	info    driver.Info
	heap    *tensor.Heap
	owner   *owner

	closing sync.RWMutex // held for writing when the owner stops
	closed  bool

	freq map[*float64]*tensor.Tensor // rotary frequencies on the device, by the caller's slice

	launched func(kernelKey) // told of every launch, when not nil

	// What follows is the owner's own.
	kernels   map[kernelKey]driver.Function
	products  *driver.Products
	workspace driver.Pointer
	staging   []byte
	inFlight  bool // the device may still read staging
	blocks    []driver.Pointer
}

var _ tensor.Device = (*Device)(nil)

// Device opens a device and compiles its kernels.
func (m *Machine) Device(opts Options) (*Device, error) {
	if opts.Float != tensor.F32 && opts.Float != tensor.BF16 {
		return nil, fmt.Errorf("cuda: no kernels for %v; it computes in float32 or bfloat16", opts.Float)
	}
	d := &Device{opts: opts, machine: m, kernels: map[kernelKey]driver.Function{}, freq: map[*float64]*tensor.Tensor{}}
	o, info, err := start(m, opts.Ordinal)
	if err != nil {
		return nil, fmt.Errorf("cuda: device %d: %w", opts.Ordinal, err)
	}
	d.owner, d.info = o, info
	if opts.Float == tensor.BF16 && !Bfloat16(info) {
		o.stop(func(c *driver.Context) error { return c.Close() })
		return nil, fmt.Errorf("cuda: %v: no products of bfloat16 before sm_80; it computes in float32", info)
	}
	d.heap = tensor.NewHeap(d.allocate, opts.Poison)
	if err := o.wait(d.prepare); err != nil {
		d.Close()
		return nil, fmt.Errorf("cuda: %v: %w", info, err)
	}
	return d, nil
}

// prepare takes what lives as long as the device.
func (d *Device) prepare(c *driver.Context) error {
	var err error
	if d.staging, err = c.Pinned(stagingBytes); err != nil {
		return err
	}
	if d.workspace, err = c.Alloc(workspaceBytes); err != nil {
		return err
	}
	if d.products, err = d.machine.blas.NewProducts(c, d.workspace, workspaceBytes); err != nil {
		return err
	}
	if err := d.load(c, false); err != nil || d.opts.Float != tensor.BF16 {
		return err
	}
	return d.load(c, true)
}

// Name is "cuda bfloat16, NVIDIA H200 (0)".
func (d *Device) Name() string {
	return fmt.Sprintf("cuda %v, %s (%d)", d.opts.Float, d.info.Name, d.info.Ordinal)
}

// Float is the type of parameters and activations.
func (d *Device) Float() tensor.DType { return d.opts.Float }

// Heap hands out the device's memory.
func (d *Device) Heap() *tensor.Heap { return d.heap }

// New is Heap().New with the device's float type.
func (d *Device) New(kind tensor.Kind, shape ...int) *tensor.Tensor {
	return d.heap.New(kind, d.opts.Float, shape...)
}

// Sync waits for all work, and says what failed in it.
func (d *Device) Sync() error {
	err := d.owner.wait(func(c *driver.Context) error {
		d.inFlight = false
		return c.Sync()
	})
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name(), err)
	}
	return nil
}

// Close waits for all work, then gives the device's memory back. A failure of that is of no more use to anybody than one of closing a
// file that was read.
func (d *Device) Close() {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	d.owner.stop(func(c *driver.Context) error {
		err := c.Sync()
		if d.products != nil {
			err = first(err, d.products.Close())
		}
		for _, p := range d.blocks {
			err = first(err, c.Free(p))
		}
		if d.workspace != 0 {
			err = first(err, c.Free(d.workspace))
		}
		if d.staging != nil {
			err = first(err, c.Unpin(d.staging))
		}
		return first(err, c.Close())
	})
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
