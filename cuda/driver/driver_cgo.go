//go:build cgo && linux

package driver

/*
#cgo LDFLAGS: -ldl
#cgo CFLAGS: -O2
#include "shim.h"
#include <stdlib.h>

static int tx_init(tx_driver* d) { return d->cuInit(0); }
static int tx_version(tx_driver* d, int* v) { return d->cuDriverGetVersion(v); }
static int tx_count(tx_driver* d, int* n) { return d->cuDeviceGetCount(n); }
static int tx_device(tx_driver* d, int* dev, int i) { return d->cuDeviceGet(dev, i); }
static int tx_name(tx_driver* d, char* s, int n, int dev) { return d->cuDeviceGetName(s, n, dev); }
static int tx_memory(tx_driver* d, size_t* n, int dev) { return d->cuDeviceTotalMem_v2(n, dev); }
static int tx_attribute(tx_driver* d, int* v, int what, int dev) { return d->cuDeviceGetAttribute(v, what, dev); }
static void tx_text(tx_driver* d, int r, const char** name, const char** text) { d->cuGetErrorName(r, name); d->cuGetErrorString(r, text); }
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Driver is the driver's library, initialised, with at least one device.
type Driver struct {
	t       *C.tx_driver
	Path    string
	Version Version
	devices int
}

// reason receives why a library cannot be used.
type reason [512]byte

func (r *reason) ptr() (*C.char, C.int) { return (*C.char)(unsafe.Pointer(r)), C.int(len(r)) }
func (r *reason) String() string        { return C.GoString((*C.char)(unsafe.Pointer(r))) }

// open tries paths in order.
func open[T any](paths []string, try func(path *C.char, why *C.char, n C.int) *T) (t *T, path, why string) {
	for _, p := range paths {
		name := C.CString(p)
		var r reason
		at, n := r.ptr()
		t = try(name, at, n)
		C.free(unsafe.Pointer(name))
		if t != nil {
			return t, p, ""
		}
		why = r.String()
	}
	return nil, "", why
}

// Load opens the first of paths that can be opened and initialises it. Errors are ErrAbsent, ErrNoDevice, or an *Error.
func Load(paths []string) (*Driver, error) {
	t, path, why := open(paths, func(p, w *C.char, n C.int) *C.tx_driver { return C.tx_open_driver(p, w, n) })
	if t == nil {
		return nil, absent("driver", paths, why)
	}
	d := &Driver{t: t, Path: path}
	var v, n C.int
	switch r := C.tx_init(t); r {
	case 0:
	case 100: // CUDA_ERROR_NO_DEVICE
		return nil, fmt.Errorf("driver %s: %w", path, ErrNoDevice)
	default:
		return nil, d.failed("cuInit", r)
	}
	if r := C.tx_version(t, &v); r != 0 {
		return nil, d.failed("cuDriverGetVersion", r)
	}
	if r := C.tx_count(t, &n); r != 0 {
		return nil, d.failed("cuDeviceGetCount", r)
	}
	d.Version, d.devices = Version(v), int(n)
	if n == 0 {
		return nil, fmt.Errorf("driver %s: %w", path, ErrNoDevice)
	}
	return d, nil
}

// failed is the error of a status that is not 0.
func (d *Driver) failed(call string, r C.int) error {
	if r == 0 {
		return nil
	}
	var name, text *C.char
	C.tx_text(d.t, r, &name, &text)
	e := &Error{Library: "driver", Call: call, Code: int(r), Text: "unknown status"}
	if name != nil && text != nil {
		e.Text = C.GoString(name) + ": " + C.GoString(text)
	}
	return e
}

// Devices describes all devices.
func (d *Driver) Devices() ([]Info, error) {
	var all []Info
	for i := range d.devices {
		info, err := d.info(i)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

func (d *Driver) info(ordinal int) (Info, error) {
	var dev C.int
	if r := C.tx_device(d.t, &dev, C.int(ordinal)); r != 0 {
		return Info{}, d.failed("cuDeviceGet", r)
	}
	var name [256]C.char
	var memory C.size_t
	if r := C.tx_name(d.t, &name[0], C.int(len(name)), dev); r != 0 {
		return Info{}, d.failed("cuDeviceGetName", r)
	}
	if r := C.tx_memory(d.t, &memory, dev); r != 0 {
		return Info{}, d.failed("cuDeviceTotalMem", r)
	}
	var v [7]C.int
	for i, what := range [...]C.int{75, 76, 16, 50, 33, 34, 97} { // CU_DEVICE_ATTRIBUTE_...: capability, multiprocessors, PCI domain, bus, device; shared memory
		if r := C.tx_attribute(d.t, &v[i], what, dev); r != 0 {
			return Info{}, d.failed("cuDeviceGetAttribute", r)
		}
	}
	return Info{
		Ordinal: ordinal, Name: C.GoString(&name[0]), Memory: int64(memory), Major: int(v[0]), Minor: int(v[1]), Multiprocessors: int(v[2]),
		PCI: fmt.Sprintf("%04x:%02x:%02x", v[3], v[4], v[5]), SharedLimit: int(v[6]),
	}, nil
}
