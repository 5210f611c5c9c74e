//go:build cgo && linux

package driver

/*
#include "shim.h"

#define ON(call) ({ int r = d->cuCtxSetCurrent(c); r ? r : d->call; })

static int tx_set_current(tx_driver* d, void* c) { return d->cuCtxSetCurrent(c); }
static int tx_side(tx_driver* d, void* c, void** s) { return ON(cuStreamCreate(s, 1)); } // CU_STREAM_NON_BLOCKING
static int tx_side_end(tx_driver* d, void* c, void* s) { return ON(cuStreamDestroy_v2(s)); }
static int tx_side_after(tx_driver* d, void* c, void* s, void* e) { return ON(cuStreamWaitEvent(s, e, 0)); }
static int tx_side_record(tx_driver* d, void* c, void* s, void* e) { return ON(cuEventRecord(e, s)); }
static int tx_event_query(tx_driver* d, void* c, void* e) { return ON(cuEventQuery(e)); }
*/
import "C"

import "unsafe"

// Current makes the context that of the calling thread, for libraries that ask the thread for theirs.
func (c *Context) Current() error {
	return c.d.failed("cuCtxSetCurrent", C.tx_set_current(c.d.t, c.ctx))
}

// Passed says whether the work before an event is done.
func (c *Context) Passed(e Event) (bool, error) {
	switch r := C.tx_event_query(c.d.t, c.ctx, e.e); r {
	case 0:
		return true, nil
	case 600: // CUDA_ERROR_NOT_READY
		return false, nil
	default:
		return false, c.d.failed("cuEventQuery", r)
	}
}

// Stream is work beside the context's own. It may be used beside the context, by one goroutine at a time.
type Stream struct {
	c *Context
	s unsafe.Pointer
}

// NewStream makes a stream.
func (c *Context) NewStream() (*Stream, error) {
	s := &Stream{c: c}
	return s, c.d.failed("cuStreamCreate", C.tx_side(c.d.t, c.ctx, &s.s))
}

// Handle is the stream as other libraries take it.
func (s *Stream) Handle() uintptr { return uintptr(s.s) }

// After makes what the stream is given next wait for an event.
func (s *Stream) After(e Event) error {
	return s.c.d.failed("cuStreamWaitEvent", C.tx_side_after(s.c.d.t, s.c.ctx, s.s, e.e))
}

// Record sets an event behind the work that the stream has been given.
func (s *Stream) Record(e Event) error {
	return s.c.d.failed("cuEventRecord", C.tx_side_record(s.c.d.t, s.c.ctx, s.s, e.e))
}

// Close ends the stream once its work is done.
func (s *Stream) Close() error {
	return s.c.d.failed("cuStreamDestroy", C.tx_side_end(s.c.d.t, s.c.ctx, s.s))
}
