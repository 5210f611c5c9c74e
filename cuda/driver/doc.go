// Package driver finds NVIDIA's libraries on a machine and calls them: the driver (memory, modules, launches), the run-time compiler, and
// the matrix library. Nothing of NVIDIA's is needed to build: libraries are opened at run time, by prototypes of our own.
//
//	Load ──▶ ErrAbsent      no driver library on this machine
//	     ├─▶ ErrNoDevice    a library, and no device behind it
//	     └─▶ Driver ──▶ Context (one device) ──▶ memory, kernels
//
// Nothing happens when the package is initialised. Every status that is not success becomes an *Error with the library's own text.
// A Context's methods belong to one thread of the operating system: the caller locks it and calls Bind first.
// Without cgo, or on other systems than Linux, Load says ErrAbsent.
package driver
