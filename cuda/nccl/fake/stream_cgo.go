//go:build cgo && linux

package fake

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  void* (*stream)(int);
  int (*idle)(void*);
  void (*end)(void*);
} tx_fake;

static int tx_fake_open(const char* path, tx_fake* f) {
  void* lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return 0;
  *(void**)&f->stream = dlsym(lib, "fake_stream");
  *(void**)&f->idle = dlsym(lib, "fake_idle");
  *(void**)&f->end = dlsym(lib, "fake_end");
  return f->stream && f->idle && f->end;
}
static uintptr_t tx_fake_stream(tx_fake* f, int device) { return (uintptr_t)f->stream(device); }
static int tx_fake_idle(tx_fake* f, uintptr_t s) { return f->idle((void*)s); }
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

// Idle says whether all that was given to a stream has been done.
func (s *Streams) Idle(stream uintptr) bool { return C.tx_fake_idle(&s.t, C.uintptr_t(stream)) != 0 }

// End frees a stream; one with a thread of its own waits for what is under way.
func (s *Streams) End(stream uintptr) { C.tx_fake_end(&s.t, C.uintptr_t(stream)) }
