//go:build cgo && linux

package driver

/*
#include "shim.h"
#include <stdlib.h>

// The context is made the thread's in the same C call as the work: a goroutine may be on another thread each time.
#define ON(call) ({ int r = d->cuCtxSetCurrent(c); r ? r : d->call; })

static int tx_retain(tx_driver* d, void** c, int dev) { return d->cuDevicePrimaryCtxRetain(c, dev); }
static int tx_release(tx_driver* d, int dev) { return d->cuDevicePrimaryCtxRelease_v2(dev); }
static int tx_stream(tx_driver* d, void* c, void** s) { return ON(cuStreamCreate(s, 1)); } // CU_STREAM_NON_BLOCKING
static int tx_stream_sync(tx_driver* d, void* c, void* s) { return ON(cuStreamSynchronize(s)); }
static int tx_stream_end(tx_driver* d, void* c, void* s) { return ON(cuStreamDestroy_v2(s)); }
static int tx_free_memory(tx_driver* d, void* c, size_t* left, size_t* all) { return ON(cuMemGetInfo_v2(left, all)); }
static int tx_alloc(tx_driver* d, void* c, uint64_t* p, size_t n) { return ON(cuMemAlloc_v2(p, n)); }
static int tx_free(tx_driver* d, void* c, uint64_t p) { return ON(cuMemFree_v2(p)); }
static int tx_host(tx_driver* d, void* c, void** p, size_t n) { return ON(cuMemHostAlloc(p, n, 0)); }
static int tx_host_free(tx_driver* d, void* c, void* p) { return ON(cuMemFreeHost(p)); }
static int tx_in(tx_driver* d, void* c, uint64_t to, const void* from, size_t n, void* s) { return ON(cuMemcpyHtoDAsync_v2(to, from, n, s)); }
static int tx_out(tx_driver* d, void* c, void* to, uint64_t from, size_t n, void* s) { return ON(cuMemcpyDtoHAsync_v2(to, from, n, s)); }
static int tx_move(tx_driver* d, void* c, uint64_t to, uint64_t from, size_t n, void* s) { return ON(cuMemcpyDtoDAsync_v2(to, from, n, s)); }
static int tx_set(tx_driver* d, void* c, uint64_t to, unsigned char v, size_t n, void* s) { return ON(cuMemsetD8Async(to, v, n, s)); }
static int tx_module(tx_driver* d, void* c, void** m, const void* image) { return ON(cuModuleLoadData(m, image)); }
static int tx_unload(tx_driver* d, void* c, void* m) { return ON(cuModuleUnload(m)); }
static int tx_function(tx_driver* d, void* c, void** f, void* m, const char* name) { return ON(cuModuleGetFunction(f, m, name)); }
static int tx_dynamic(tx_driver* d, void* c, void* f, int bytes) { return ON(cuFuncSetAttribute(f, 8, bytes)); } // MAX_DYNAMIC_SHARED_SIZE_BYTES
static int tx_event(tx_driver* d, void* c, void** e) { return ON(cuEventCreate(e, 2)); } // CU_EVENT_DISABLE_TIMING
static int tx_event_record(tx_driver* d, void* c, void* e, void* s) { return ON(cuEventRecord(e, s)); }
static int tx_event_wait(tx_driver* d, void* c, void* e) { return ON(cuEventSynchronize(e)); }
static int tx_event_end(tx_driver* d, void* c, void* e) { return ON(cuEventDestroy_v2(e)); }
*/
import "C"

import "unsafe"

// Context is one device's memory and work. Any goroutine may call it, one at a time; work is done in the order given.
type Context struct {
	d       *Driver
	Info    Info
	dev     C.int
	ctx     unsafe.Pointer
	stream  unsafe.Pointer
	modules []unsafe.Pointer
	funcs   []unsafe.Pointer // by Function, less 1
}

// Function is a kernel of a loaded module; 0 is none.
type Function int

// Bind retains the primary context of a device, which the libraries share.
func (d *Driver) Bind(ordinal int) (*Context, error) {
	info, err := d.info(ordinal)
	if err != nil {
		return nil, err
	}
	c := &Context{d: d, Info: info}
	if r := C.tx_retain(d.t, &c.ctx, C.int(ordinal)); r != 0 {
		return nil, d.failed("cuDevicePrimaryCtxRetain", r)
	}
	c.dev = C.int(ordinal)
	if r := C.tx_stream(d.t, c.ctx, &c.stream); r != 0 {
		return nil, d.failed("cuStreamCreate", r)
	}
	return c, nil
}

// Close unloads modules and gives the context back. Memory must have been freed.
func (c *Context) Close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, m := range c.modules {
		keep(c.d.failed("cuModuleUnload", C.tx_unload(c.d.t, c.ctx, m)))
	}
	keep(c.d.failed("cuStreamDestroy", C.tx_stream_end(c.d.t, c.ctx, c.stream)))
	keep(c.d.failed("cuDevicePrimaryCtxRelease", C.tx_release(c.d.t, c.dev)))
	return first
}

// Alloc takes n > 0 bytes of device memory; see OutOfMemory.
func (c *Context) Alloc(n int64) (Pointer, error) {
	var p C.uint64_t
	r := C.tx_alloc(c.d.t, c.ctx, &p, C.size_t(n))
	return Pointer(p), c.d.failed("cuMemAlloc", r)
}

// Free gives memory back.
func (c *Context) Free(p Pointer) error {
	return c.d.failed("cuMemFree", C.tx_free(c.d.t, c.ctx, C.uint64_t(p)))
}

// Left is the device memory that nobody has taken, in bytes.
func (c *Context) Left() (int64, error) {
	var left, all C.size_t
	r := C.tx_free_memory(c.d.t, c.ctx, &left, &all)
	return int64(left), c.d.failed("cuMemGetInfo", r)
}

// Pinned takes n bytes of host memory that the device can copy from and to by itself.
func (c *Context) Pinned(n int) ([]byte, error) {
	var p unsafe.Pointer
	if r := C.tx_host(c.d.t, c.ctx, &p, C.size_t(n)); r != 0 {
		return nil, c.d.failed("cuMemHostAlloc", r)
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// Unpin gives pinned memory back.
func (c *Context) Unpin(b []byte) error {
	return c.d.failed("cuMemFreeHost", C.tx_host_free(c.d.t, c.ctx, unsafe.Pointer(unsafe.SliceData(b))))
}

// CopyIn starts to copy pinned memory to the device, in the order of the work given. from must stay as it is until Sync.
func (c *Context) CopyIn(to Pointer, from []byte) error {
	return c.d.failed("cuMemcpyHtoDAsync", C.tx_in(c.d.t, c.ctx, C.uint64_t(to), unsafe.Pointer(unsafe.SliceData(from)), C.size_t(len(from)), c.stream))
}

// CopyOut starts to copy to pinned memory, which holds the values after Sync.
func (c *Context) CopyOut(to []byte, from Pointer) error {
	return c.d.failed("cuMemcpyDtoHAsync", C.tx_out(c.d.t, c.ctx, unsafe.Pointer(unsafe.SliceData(to)), C.uint64_t(from), C.size_t(len(to)), c.stream))
}

// Move copies n bytes inside the device.
func (c *Context) Move(to, from Pointer, n int64) error {
	return c.d.failed("cuMemcpyDtoDAsync", C.tx_move(c.d.t, c.ctx, C.uint64_t(to), C.uint64_t(from), C.size_t(n), c.stream))
}

// Set writes n bytes of one value.
func (c *Context) Set(to Pointer, value byte, n int64) error {
	return c.d.failed("cuMemsetD8Async", C.tx_set(c.d.t, c.ctx, C.uint64_t(to), C.uchar(value), C.size_t(n), c.stream))
}

// Sync waits for all work given, and reports what failed in it.
func (c *Context) Sync() error {
	return c.d.failed("cuStreamSynchronize", C.tx_stream_sync(c.d.t, c.ctx, c.stream))
}

// Load loads a compiled module and finds its kernels. shared is how much dynamic shared memory they may ask for, in bytes.
func (c *Context) Load(image []byte, names []string, shared int) (map[string]Function, error) {
	var m unsafe.Pointer
	if r := C.tx_module(c.d.t, c.ctx, &m, unsafe.Pointer(unsafe.SliceData(image))); r != 0 {
		return nil, c.d.failed("cuModuleLoadData", r)
	}
	c.modules = append(c.modules, m)
	found := map[string]Function{}
	for _, n := range names {
		name := C.CString(n)
		var f unsafe.Pointer
		r := C.tx_function(c.d.t, c.ctx, &f, m, name)
		C.free(unsafe.Pointer(name))
		if r != 0 {
			return nil, c.d.failed("cuModuleGetFunction of "+n, r)
		}
		if shared > 0 {
			if r := C.tx_dynamic(c.d.t, c.ctx, f, C.int(shared)); r != 0 {
				return nil, c.d.failed("cuFuncSetAttribute of "+n, r)
			}
		}
		c.funcs = append(c.funcs, f)
		found[n] = Function(len(c.funcs))
	}
	return found, nil
}

// Launch runs a kernel over packed arguments, in the order of the work given.
func (c *Context) Launch(f Function, grid, block Dim, shared int, args []byte) error {
	r := C.tx_launch(c.d.t, c.ctx, c.funcs[f-1], C.uint(grid.X), C.uint(grid.Y), C.uint(grid.Z), C.uint(block.X), C.uint(block.Y), C.uint(block.Z),
		C.uint(shared), c.stream, unsafe.Pointer(unsafe.SliceData(args)), C.size_t(len(args)))
	return c.d.failed("cuLaunchKernel", r)
}

// Event is a point in the order of the work; the zero value is none.
type Event struct{ e unsafe.Pointer }

// NewEvent makes an event.
func (c *Context) NewEvent() (Event, error) {
	var e Event
	r := C.tx_event(c.d.t, c.ctx, &e.e)
	return e, c.d.failed("cuEventCreate", r)
}

// Record puts the event behind all work given so far.
func (c *Context) Record(e Event) error {
	return c.d.failed("cuEventRecord", C.tx_event_record(c.d.t, c.ctx, e.e, c.stream))
}

// Await waits until the work before the event is done.
func (c *Context) Await(e Event) error {
	return c.d.failed("cuEventSynchronize", C.tx_event_wait(c.d.t, c.ctx, e.e))
}

// Forget gives an event back.
func (c *Context) Forget(e Event) error {
	return c.d.failed("cuEventDestroy", C.tx_event_end(c.d.t, c.ctx, e.e))
}
