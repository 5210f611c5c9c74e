//go:build cgo && linux

package fake

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  void* (*stream)(int);
  long (*given)(void*);
  long (*done)(void*);
  void (*end)(void*);
} tx_fake;

static int tx_fake_open(const char* path, tx_fake* f) {
  void* lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return 0;
  *(void**)&f->stream = dlsym(lib, "fake_stream");
  *(void**)&f->given = dlsym(lib, "fake_given");
  *(void**)&f->done = dlsym(lib, "fake_done");
  *(void**)&f->end = dlsym(lib, "fake_end");
  return f->stream && f->given && f->done && f->end;
}
static uintptr_t tx_fake_stream(tx_fake* f, int device) { return (uintptr_t)f->stream(device); }
static long tx_fake_given(tx_fake* f, uintptr_t s) { return f->given((void*)s); }
static long tx_fake_done(tx_fake* f, uintptr_t s) { return f->done((void*)s); }
static void tx_fake_end(tx_fake* f, uintptr_t s) { f->end((void*)s); }
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Streams makes streams of a library that Build made.
type Streams struct{ t C.tx_fake }

// OpenStreams finds the streams in the library at a path.
func OpenStreams(path string) (*Streams, error) {
	s := &Streams{}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if C.tx_fake_open(name, &s.t) == 0 {
		return nil, fmt.Errorf("fake nccl: %s has no streams", path)
	}
	return s, nil
}

// New makes a stream: with a device of 0 or more it shares a thread with all others of the device, with -1 it has its own.
func (s *Streams) New(device int) uintptr { return uintptr(C.tx_fake_stream(&s.t, C.int(device))) }

// Given is how many groups a stream has been given, Done how many of them are done: they are done in order.
func (s *Streams) Given(stream uintptr) int { return int(C.tx_fake_given(&s.t, C.uintptr_t(stream))) }
func (s *Streams) Done(stream uintptr) int  { return int(C.tx_fake_done(&s.t, C.uintptr_t(stream))) }

// Idle says whether all that was given to a stream has been done.
func (s *Streams) Idle(stream uintptr) bool { return s.Done(stream) == s.Given(stream) }

// End frees a stream; one with a thread of its own waits for what is under way.
func (s *Streams) End(stream uintptr) { C.tx_fake_end(&s.t, C.uintptr_t(stream)) }
