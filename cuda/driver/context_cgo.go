//go:build cgo && linux

package driver

/*
#include "shim.h"
#include <stdlib.h>

static int tx_retain(tx_driver* d, void** c, int dev) { return d->cuDevicePrimaryCtxRetain(c, dev); }
static int tx_release(tx_driver* d, int dev) { return d->cuDevicePrimaryCtxRelease_v2(dev); }
static int tx_current(tx_driver* d, void* c) { return d->cuCtxSetCurrent(c); }
static int tx_stream(tx_driver* d, void** s) { return d->cuStreamCreate(s, 1); } // CU_STREAM_NON_BLOCKING
static int tx_stream_sync(tx_driver* d, void* s) { return d->cuStreamSynchronize(s); }
static int tx_stream_end(tx_driver* d, void* s) { return d->cuStreamDestroy_v2(s); }
static int tx_free_memory(tx_driver* d, size_t* left, size_t* all) { return d->cuMemGetInfo_v2(left, all); }
static int tx_alloc(tx_driver* d, uint64_t* p, size_t n) { return d->cuMemAlloc_v2(p, n); }
static int tx_free(tx_driver* d, uint64_t p) { return d->cuMemFree_v2(p); }
static int tx_host(tx_driver* d, void** p, size_t n) { return d->cuMemHostAlloc(p, n, 0); }
static int tx_host_free(tx_driver* d, void* p) { return d->cuMemFreeHost(p); }
static int tx_in(tx_driver* d, uint64_t to, const void* from, size_t n, void* s) { return d->cuMemcpyHtoDAsync_v2(to, from, n, s); }
static int tx_out(tx_driver* d, void* to, uint64_t from, size_t n, void* s) { return d->cuMemcpyDtoHAsync_v2(to, from, n, s); }
static int tx_move(tx_driver* d, uint64_t to, uint64_t from, size_t n, void* s) { return d->cuMemcpyDtoDAsync_v2(to, from, n, s); }
static int tx_set(tx_driver* d, uint64_t to, unsigned char v, size_t n, void* s) { return d->cuMemsetD8Async(to, v, n, s); }
static int tx_module(tx_driver* d, void** m, const void* image) { return d->cuModuleLoadData(m, image); }
static int tx_unload(tx_driver* d, void* m) { return d->cuModuleUnload(m); }
static int tx_function(tx_driver* d, void** f, void* m, const char* name) { return d->cuModuleGetFunction(f, m, name); }
static int tx_dynamic(tx_driver* d, void* f, int bytes) { return d->cuFuncSetAttribute(f, 8, bytes); } // MAX_DYNAMIC_SHARED_SIZE_BYTES
*/
import "C"

import "unsafe"

// Context is one device's memory and work. All its methods are called on one thread of the operating system, after Bind.
type Context struct {
	d       *Driver
	Info    Info
	dev     C.int
	ctx     unsafe.Pointer
	stream  unsafe.Pointer
	modules []unsafe.Pointer
	funcs   map[Function]unsafe.Pointer
}

// Function is a kernel of a loaded module; 0 is none.
type Function int

// Bind retains the primary context of a device, which the libraries share, and makes it the calling thread's.
func (d *Driver) Bind(ordinal int) (*Context, error) {
	info, err := d.info(ordinal)
	if err != nil {
		return nil, err
	}
	c := &Context{d: d, Info: info, funcs: map[Function]unsafe.Pointer{}}
	if r := C.tx_retain(d.t, &c.ctx, C.int(ordinal)); r != 0 {
		return nil, d.failed("cuDevicePrimaryCtxRetain", r)
	}
	c.dev = C.int(ordinal)
	if r := C.tx_current(d.t, c.ctx); r != 0 {
		return nil, d.failed("cuCtxSetCurrent", r)
	}
	if r := C.tx_stream(d.t, &c.stream); r != 0 {
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
		keep(c.d.failed("cuModuleUnload", C.tx_unload(c.d.t, m)))
	}
	keep(c.d.failed("cuStreamDestroy", C.tx_stream_end(c.d.t, c.stream)))
	keep(c.d.failed("cuDevicePrimaryCtxRelease", C.tx_release(c.d.t, c.dev)))
	return first
}

// Alloc takes n > 0 bytes of device memory; see OutOfMemory.
func (c *Context) Alloc(n int64) (Pointer, error) {
	var p C.uint64_t
	r := C.tx_alloc(c.d.t, &p, C.size_t(n))
	return Pointer(p), c.d.failed("cuMemAlloc", r)
}

// Free gives memory back.
func (c *Context) Free(p Pointer) error {
	return c.d.failed("cuMemFree", C.tx_free(c.d.t, C.uint64_t(p)))
}

// Left is the device memory that nobody has taken, in bytes.
func (c *Context) Left() (int64, error) {
	var left, all C.size_t
	r := C.tx_free_memory(c.d.t, &left, &all)
	return int64(left), c.d.failed("cuMemGetInfo", r)
}

// Pinned takes n bytes of host memory that the device can copy from and to by itself.
func (c *Context) Pinned(n int) ([]byte, error) {
	var p unsafe.Pointer
	if r := C.tx_host(c.d.t, &p, C.size_t(n)); r != 0 {
		return nil, c.d.failed("cuMemHostAlloc", r)
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// Unpin gives pinned memory back.
func (c *Context) Unpin(b []byte) error {
	return c.d.failed("cuMemFreeHost", C.tx_host_free(c.d.t, unsafe.Pointer(unsafe.SliceData(b))))
}

// CopyIn starts to copy pinned memory to the device, in the order of the work given. from must stay as it is until Sync.
func (c *Context) CopyIn(to Pointer, from []byte) error {
	return c.d.failed("cuMemcpyHtoDAsync", C.tx_in(c.d.t, C.uint64_t(to), unsafe.Pointer(unsafe.SliceData(from)), C.size_t(len(from)), c.stream))
}

// CopyOut starts to copy to pinned memory, which holds the values after Sync.
func (c *Context) CopyOut(to []byte, from Pointer) error {
	return c.d.failed("cuMemcpyDtoHAsync", C.tx_out(c.d.t, unsafe.Pointer(unsafe.SliceData(to)), C.uint64_t(from), C.size_t(len(to)), c.stream))
}

// Move copies n bytes inside the device.
func (c *Context) Move(to, from Pointer, n int64) error {
	return c.d.failed("cuMemcpyDtoDAsync", C.tx_move(c.d.t, C.uint64_t(to), C.uint64_t(from), C.size_t(n), c.stream))
}

// Set writes n bytes of one value.
func (c *Context) Set(to Pointer, value byte, n int64) error {
	return c.d.failed("cuMemsetD8Async", C.tx_set(c.d.t, C.uint64_t(to), C.uchar(value), C.size_t(n), c.stream))
}

// Sync waits for all work given, and reports what failed in it.
func (c *Context) Sync() error {
	return c.d.failed("cuStreamSynchronize", C.tx_stream_sync(c.d.t, c.stream))
}

// Load loads a compiled module and finds its kernels. shared is how much dynamic shared memory they may ask for, in bytes.
func (c *Context) Load(image []byte, names []string, shared int) (map[string]Function, error) {
	var m unsafe.Pointer
	if r := C.tx_module(c.d.t, &m, unsafe.Pointer(unsafe.SliceData(image))); r != 0 {
		return nil, c.d.failed("cuModuleLoadData", r)
	}
	c.modules = append(c.modules, m)
	found := map[string]Function{}
	for _, n := range names {
		name := C.CString(n)
		var f unsafe.Pointer
		r := C.tx_function(c.d.t, &f, m, name)
		C.free(unsafe.Pointer(name))
		if r != 0 {
			return nil, c.d.failed("cuModuleGetFunction of "+n, r)
		}
		if shared > 0 {
			if r := C.tx_dynamic(c.d.t, f, C.int(shared)); r != 0 {
				return nil, c.d.failed("cuFuncSetAttribute of "+n, r)
			}
		}
		id := Function(len(c.funcs) + 1)
		c.funcs[id], found[n] = f, id
	}
	return found, nil
}

// Launch runs a kernel over packed arguments, in the order of the work given.
func (c *Context) Launch(f Function, grid, block Dim, shared int, args []byte) error {
	g := [3]C.uint{C.uint(grid.X), C.uint(grid.Y), C.uint(grid.Z)}
	b := [3]C.uint{C.uint(block.X), C.uint(block.Y), C.uint(block.Z)}
	r := C.tx_launch(c.d.t, c.funcs[f], &g[0], &b[0], C.uint(shared), c.stream, unsafe.Pointer(unsafe.SliceData(args)), C.size_t(len(args)))
	return c.d.failed("cuLaunchKernel", r)
}
