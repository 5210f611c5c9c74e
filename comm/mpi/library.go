//go:build cgo && linux

package mpi

// #cgo LDFLAGS: -ldl -lm
// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// library is an opened MPI library.
type library struct {
	table *C.tx_mpi
	path  string
	about string // as the library calls itself
}

// candidates are the names under which libraries are looked for: what TRIAX_LIBMPI names and nothing else when it does; else those of the
// family whose launcher started this process, or all.
func candidates(family string, env func(string) string) []string {
	if path := env("TRIAX_LIBMPI"); path != "" {
		return []string{path}
	}
	open, mpich, standard := []string{"libmpi.so.40", "libmpi.so.80"}, []string{"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12"}, []string{"libmpi_abi.so.0", "libmpi_abi.so"}
	switch family {
	case "Open MPI":
		return append(open, standard...)
	case "MPICH":
		return append(mpich, standard...)
	}
	return append(append(append(standard, open...), mpich...), "libmpi.so")
}

func load(family string) (*library, error) {
	var refused []string
	why := (*C.char)(C.malloc(1024))
	defer C.free(unsafe.Pointer(why))
	for _, path := range candidates(family, os.Getenv) {
		name := C.CString(path)
		table := C.tx_load(name, why, 1024)
		C.free(unsafe.Pointer(name))
		if table != nil {
			return &library{table: table, path: path}, nil
		}
		refused = append(refused, C.GoString(why))
	}
	return nil, fmt.Errorf("no MPI library can be opened: %s; install the one that the launcher belongs to, or name it with TRIAX_LIBMPI", strings.Join(refused, "; "))
}

// family is the library's binary interface.
func (l *library) family() string {
	switch l.table.family {
	case C.tx_open_mpi:
		return "Open MPI"
	case C.tx_mpich:
		return "MPICH"
	}
	return "MPI 5 ABI"
}

// describe asks the library for its name; any thread may, once it is initialised.
func (l *library) describe() string {
	text := (*C.char)(C.calloc(1, 16384))
	defer C.free(unsafe.Pointer(text))
	C.tx_version(l.table, text)
	line, _, _ := strings.Cut(strings.ReplaceAll(C.GoString(text), "\t", " "), "\n")
	return strings.TrimSpace(line)
}

// check turns a code of an MPI call into an error.
func (l *library) check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	text := (*C.char)(C.calloc(1, 1024))
	defer C.free(unsafe.Pointer(text))
	C.tx_error(l.table, code, text, 1024)
	return fmt.Errorf("MPI_%s: %s", call, strings.TrimSpace(C.GoString(text)))
}
