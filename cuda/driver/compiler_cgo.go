//go:build cgo && linux

package driver

/*
#include "shim.h"
#include <stdlib.h>

static int tx_rtc_version(tx_compiler* c, int* major, int* minor) { return c->nvrtcVersion(major, minor); }
static int tx_create(tx_compiler* c, void** p, const char* source, const char* name) { return c->nvrtcCreateProgram(p, source, name, 0, NULL, NULL); }
static void tx_destroy(tx_compiler* c, void* p) { c->nvrtcDestroyProgram(&p); }
static int tx_compile(tx_compiler* c, void* p, int n, char** options) { return c->nvrtcCompileProgram(p, n, (const char* const*)options); }
static int tx_image_size(tx_compiler* c, void* p, size_t* n) { return c->nvrtcGetCUBINSize(p, n); }
static int tx_image(tx_compiler* c, void* p, char* to) { return c->nvrtcGetCUBIN(p, to); }
static int tx_log_size(tx_compiler* c, void* p, size_t* n) { return c->nvrtcGetProgramLogSize(p, n); }
static int tx_log(tx_compiler* c, void* p, char* to) { return c->nvrtcGetProgramLog(p, to); }
static const char* tx_rtc_text(tx_compiler* c, int r) { return c->nvrtcGetErrorString(r); }
*/
import "C"

import (
	"strings"
	"unsafe"
)

// Compiler is the run-time compiler's library. It needs neither a device nor a driver.
type Compiler struct {
	t       *C.tx_compiler
	Path    string
	Version Version
}

// LoadCompiler opens the first of paths that can be opened.
func LoadCompiler(paths []string) (*Compiler, error) {
	t, path, why := open(paths, func(p, w *C.char, n C.int) *C.tx_compiler { return C.tx_open_compiler(p, w, n) })
	if t == nil {
		return nil, absent("compiler", paths, why)
	}
	c := &Compiler{t: t, Path: path}
	var major, minor C.int
	if r := C.tx_rtc_version(t, &major, &minor); r != 0 {
		return nil, c.failed("nvrtcVersion", r, "")
	}
	c.Version = Version(1000*int(major) + 10*int(minor))
	return c, nil
}

func (c *Compiler) failed(call string, r C.int, log string) error {
	text := C.GoString(C.tx_rtc_text(c.t, r))
	if log = strings.TrimSpace(log); log != "" {
		text += ":\n" + log
	}
	return &Error{Library: "compiler", Call: call, Code: int(r), Text: text}
}

// Compile makes a module of a source. An *Error holds the compiler's log.
func (c *Compiler) Compile(name, source string, options []string) ([]byte, error) {
	image, _, err := c.CompileLog(name, source, options)
	return image, err
}

// CompileLog is Compile, with what the compiler says of a source that it takes.
func (c *Compiler) CompileLog(name, source string, options []string) (image []byte, log string, err error) {
	text, file := C.CString(source), C.CString(name)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(file))
	var p unsafe.Pointer
	if r := C.tx_create(c.t, &p, text, file); r != 0 {
		return nil, "", c.failed("nvrtcCreateProgram", r, "")
	}
	defer C.tx_destroy(c.t, p)
	list := make([]*C.char, len(options)+1)
	for i, o := range options {
		list[i] = C.CString(o)
		defer C.free(unsafe.Pointer(list[i]))
	}
	if r := C.tx_compile(c.t, p, C.int(len(options)), &list[0]); r != 0 {
		return nil, "", c.failed("nvrtcCompileProgram of "+name, r, c.log(p))
	}
	var n C.size_t
	if r := C.tx_image_size(c.t, p, &n); r != 0 {
		return nil, "", c.failed("nvrtcGetCUBINSize", r, "")
	}
	image = make([]byte, n)
	if r := C.tx_image(c.t, p, (*C.char)(unsafe.Pointer(unsafe.SliceData(image)))); r != 0 {
		return nil, "", c.failed("nvrtcGetCUBIN", r, "")
	}
	return image, c.log(p), nil
}

// log is what the compiler said; "" when even that fails, as the error at hand matters more.
func (c *Compiler) log(p unsafe.Pointer) string {
	var n C.size_t
	if C.tx_log_size(c.t, p, &n) != 0 || n == 0 {
		return ""
	}
	b := make([]byte, n)
	if C.tx_log(c.t, p, (*C.char)(unsafe.Pointer(&b[0]))) != 0 {
		return ""
	}
	return strings.TrimRight(string(b), "\x00")
}
