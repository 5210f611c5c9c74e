//go:build cgo && linux

package driver

/*
#include "shim.h"
#include <stdlib.h>

// The library works on the calling thread's context.
static int tx_blas_create(tx_driver* d, void* c, tx_blas* l, void** h) { int r = d->cuCtxSetCurrent(c); return r ? 3 : l->cublasLtCreate(h); }
static int tx_blas_plan(tx_driver* d, void* c, tx_blas* l, void* h, const tx_shape* s, tx_plan* p, const char** call) {
  *call = "cuCtxSetCurrent";
  return d->cuCtxSetCurrent(c) ? 3 : tx_make_plan(l, h, s, p, call);
}
static int tx_blas_run(tx_driver* d, void* c, tx_blas* l, void* h, tx_plan* p, uint64_t a, uint64_t b, uint64_t y, float beta, uint64_t w, void* s) {
  return d->cuCtxSetCurrent(c) ? 3 : tx_run_plan(l, h, p, a, b, y, beta, w, s);
}
static int tx_blas_destroy(tx_blas* l, void* h) { return l->cublasLtDestroy(h); }
static size_t tx_blas_version(tx_blas* l) { return l->cublasLtGetVersion(); }
static const char* tx_blas_text(tx_blas* l, int r) { return l->cublasLtGetStatusString(r); }
*/
import "C"

import "unsafe"

// BLAS is the matrix library.
type BLAS struct {
	t       *C.tx_blas
	Path    string
	Version int // 120900 is 12.9.0
}

// LoadBLAS opens the first of paths that can be opened.
func LoadBLAS(paths []string) (*BLAS, error) {
	t, path, why := open(paths, func(p, w *C.char, n C.int) *C.tx_blas { return C.tx_open_blas(p, w, n) })
	if t == nil {
		return nil, absent("blas", paths, why)
	}
	return &BLAS{t: t, Path: path, Version: int(C.tx_blas_version(t))}, nil
}

func (b *BLAS) failed(call string, r C.int) error {
	return &Error{Library: "blas", Call: call, Code: int(r), Text: C.GoString(C.tx_blas_text(b.t, r))}
}

// Products runs products on a context's stream, and keeps what has been worked out for a shape.
type Products struct {
	b         *BLAS
	c         *Context
	handle    unsafe.Pointer
	workspace Pointer
	room      int64
	plans     map[Product]*C.tx_plan
}

// NewProducts opens the library on the context's device, with room bytes of workspace there.
func (b *BLAS) NewProducts(c *Context, workspace Pointer, room int64) (*Products, error) {
	p := &Products{b: b, c: c, workspace: workspace, room: room, plans: map[Product]*C.tx_plan{}}
	if r := C.tx_blas_create(c.d.t, c.ctx, b.t, &p.handle); r != 0 {
		return nil, b.failed("cublasLtCreate", r)
	}
	return p, nil
}

// Close forgets all plans.
func (p *Products) Close() error {
	for _, plan := range p.plans {
		C.tx_free_plan(p.b.t, plan)
		C.free(unsafe.Pointer(plan))
	}
	p.plans = nil
	if r := C.tx_blas_destroy(p.b.t, p.handle); r != 0 {
		return p.b.failed("cublasLtDestroy", r)
	}
	return nil
}

// plan: the library's matrices are column-major, so a row-major product is that of the transposes in the other order:
// c' [N M] = op(b)' op(a)', and a row-major matrix read by columns is its transpose already.
func (p *Products) plan(s Product) (*C.tx_plan, error) {
	if plan, ok := p.plans[s]; ok {
		return plan, nil
	}
	shape := C.tx_shape{
		m: C.uint64_t(s.N), n: C.uint64_t(s.M), k: C.uint64_t(s.K), workspace: C.uint64_t(p.room),
		align: [4]C.uint32_t{C.uint32_t(s.Align[1]), C.uint32_t(s.Align[0]), C.uint32_t(s.Align[2]), C.uint32_t(s.Align[2])},
	}
	if s.BF16 {
		shape._type, shape.out = 14, 14 // CUDA_R_16BF
	}
	if s.Wide {
		shape.out = 0 // CUDA_R_32F
	}
	if s.TransB {
		shape.trans_a = 1
	}
	if s.TransA {
		shape.trans_b = 1
	}
	plan := (*C.tx_plan)(C.calloc(1, C.sizeof_tx_plan))
	var call *C.char
	if r := C.tx_blas_plan(p.c.d.t, p.c.ctx, p.b.t, p.handle, &shape, plan, &call); r != 0 {
		C.free(unsafe.Pointer(plan))
		return nil, p.b.failed(C.GoString(call), r)
	}
	p.plans[s] = plan
	return plan, nil
}

// Run multiplies, in the order of the work given to the context.
func (p *Products) Run(s Product, c, a, b Pointer, beta float32) error {
	plan, err := p.plan(s)
	if err != nil {
		return err
	}
	if r := C.tx_blas_run(p.c.d.t, p.c.ctx, p.b.t, p.handle, plan, C.uint64_t(b), C.uint64_t(a), C.uint64_t(c), C.float(beta), C.uint64_t(p.workspace), p.c.stream); r != 0 {
		return p.b.failed("cublasLtMatmul", r)
	}
	return nil
}
