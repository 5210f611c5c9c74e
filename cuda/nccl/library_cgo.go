//go:build cgo && linux

package nccl

/*
#cgo LDFLAGS: -ldl
#cgo CFLAGS: -O2
#include "shim.h"
#include <stdlib.h>

static int tx_version(tx_nccl* l, int* v) { return l->GetVersion(v); }
static int tx_unique(tx_nccl* l, tx_id* id) { return l->GetUniqueId(id); }
static int tx_state(tx_nccl* l, void* c, int* state) { return l->CommGetAsyncError(c, state); }
static int tx_finalize(tx_nccl* l, void* c) { return l->CommFinalize(c); }
static int tx_destroy(tx_nccl* l, void* c) { return l->CommDestroy(c); }
static int tx_abort(tx_nccl* l, void* c) { return l->CommAbort(c); }
static const char* tx_text(tx_nccl* l, int r) { return l->GetErrorString(r); }
static const char* tx_last(tx_nccl* l, void* c) { return l->GetLastError(c); }
*/
import "C"

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"triax/cuda/driver"
)

// Library is NCCL, opened.
type Library struct {
	t       *C.tx_nccl
	Path    string
	Version Version
}

// Load opens the first of paths that can be opened.
func Load(paths []string) (*Library, error) {
	var why [512]C.char
	for _, p := range paths {
		name := C.CString(p)
		t := C.tx_open_nccl(name, &why[0], C.int(len(why)))
		C.free(unsafe.Pointer(name))
		if t == nil {
			continue
		}
		l := &Library{t: t, Path: p}
		var v C.int
		if r := C.tx_version(t, &v); r != 0 {
			return nil, l.failed("ncclGetVersion", r, nil)
		}
		l.Version = Version(v)
		return l, nil
	}
	return nil, fmt.Errorf("nccl: %w; tried %v; the last said: %s", driver.ErrAbsent, paths, C.GoString(&why[0]))
}

const inProgress = 7

// failed is the error of a status; the library's last words are added, which say more than the status does.
func (l *Library) failed(call string, r C.int, c unsafe.Pointer) error {
	if r == 0 {
		return nil
	}
	text := C.GoString(C.tx_text(l.t, r))
	if last := strings.TrimSpace(C.GoString(C.tx_last(l.t, c))); last != "" {
		text += ": " + last
	}
	return &driver.Error{Library: "nccl", Call: call, Code: int(r), Text: text}
}

// UniqueID makes the name of a communicator. The process that made it helps the ranks to find each other, and must live until they have.
func (l *Library) UniqueID() (id ID, err error) {
	r := C.tx_unique(l.t, (*C.tx_id)(unsafe.Pointer(&id)))
	return id, l.failed("ncclGetUniqueId", r, nil)
}

// Comm is one rank's end of a communicator.
type Comm struct {
	l      *Library
	handle unsafe.Pointer
	Size   int
	Rank   int

	// Of a Split that is under way: the library writes the handle when it is over, to memory of C's.
	parent *Comm
	cell   *unsafe.Pointer
}

// Init begins to make a communicator of size ranks; State says when all have come. maxCTAs bounds the device's blocks that it uses, 0 does not.
func (l *Library) Init(id ID, size, rank, maxCTAs int) (*Comm, error) {
	c := &Comm{l: l, Size: size, Rank: rank}
	r := C.tx_nccl_init(l.t, &c.handle, C.int(size), (*C.tx_id)(unsafe.Pointer(&id)), C.int(rank), C.int(maxCTAs))
	if r != 0 {
		return nil, l.failed(fmt.Sprintf("ncclCommInitRankConfig(%d of %d)", rank, size), r, nil)
	}
	return c, nil
}

// Split begins to make communicators of the ranks of c with the same color, ordered by key; all ranks of c call it, and c cannot be used until its
// State is done. members is how many have this color, and place this rank's among them. With NoColor this rank is in none, and the result is nil.
func (c *Comm) Split(color, key, members, place, maxCTAs int) (*Comm, error) {
	out := &Comm{l: c.l, Size: members, Rank: place, parent: c, cell: (*unsafe.Pointer)(C.calloc(1, C.size_t(unsafe.Sizeof(unsafe.Pointer(nil)))))}
	if r := C.tx_nccl_split(c.l.t, c.handle, C.int(color), C.int(key), out.cell, C.int(maxCTAs)); r != 0 {
		return nil, c.l.failed("ncclCommSplit", r, c.handle) // the cell is left: the library may still write to it
	}
	if color == NoColor {
		return nil, nil
	}
	return out, nil
}

// NoColor is the color of ranks that are in no part of a Split.
const NoColor = -1

// State says whether what was begun on a communicator has all been done on the host's side, and what has gone wrong on it.
func (c *Comm) State() (done bool, err error) {
	if c.parent != nil {
		if done, err := c.parent.State(); !done || err != nil {
			return false, err
		}
		if c.handle = atomic.LoadPointer(c.cell); c.handle == nil {
			return false, nil
		}
		C.free(unsafe.Pointer(c.cell))
		c.parent, c.cell = nil, nil
	}
	var state C.int
	if r := C.tx_state(c.l.t, c.handle, &state); r != 0 {
		return false, c.l.failed("ncclCommGetAsyncError", r, c.handle)
	}
	if state == inProgress {
		return false, nil
	}
	return true, c.l.failed("communicator", state, c.handle)
}

// Finalize begins to end a communicator whose operations have been issued by all; State says when it is over, and Destroy then frees it.
func (c *Comm) Finalize() error {
	if r := C.tx_finalize(c.l.t, c.handle); r != inProgress {
		return c.l.failed("ncclCommFinalize", r, c.handle)
	}
	return nil
}

// Destroy frees a communicator after Finalize.
func (c *Comm) Destroy() error {
	return c.l.failed("ncclCommDestroy", C.tx_destroy(c.l.t, c.handle), nil)
}

// Abort ends whatever is under way on a communicator, on the device too, and frees it. The other ranks are not told.
func (c *Comm) Abort() error {
	if c.handle == nil { // of a Split that never ended: its parent's abort ends it
		return nil
	}
	return c.l.failed("ncclCommAbort", C.tx_abort(c.l.t, c.handle), nil)
}

// Issue gives a group of operations to the device. It returns when they are given, not when they are done; State tells when the library is through
// with its part of it.
func (l *Library) Issue(ops []Op) error {
	if len(ops) == 0 {
		return nil
	}
	list := make([]C.tx_op, len(ops))
	for i, o := range ops {
		list[i] = C.tx_op{
			comm: C.uint64_t(uintptr(o.Comm.handle)), stream: C.uint64_t(o.Stream), send: C.uint64_t(o.Send), recv: C.uint64_t(o.Recv), count: C.uint64_t(o.Count),
			kind: C.int32_t(o.Kind), _type: C.int32_t(o.Type), reduction: C.int32_t(o.Reduction), peer: C.int32_t(o.Peer),
		}
	}
	var at C.int
	r := C.tx_nccl_issue(l.t, &list[0], C.int(len(list)), &at)
	if r == 0 {
		return nil
	}
	call := "ncclGroupEnd"
	if int(at) < len(ops) {
		call = ops[at].Kind.String()
	}
	return l.failed(call, r, ops[0].Comm.handle)
}
