// Package driver finds NVIDIA's libraries on a machine and calls them: the driver (memory, modules, launches), the run-time compiler, and
// the matrix library. Nothing of NVIDIA's is needed to build: libraries are opened at run time, by prototypes of our own.
//
//	Load ──▶ ErrAbsent      no driver library on this machine
//	     ├─▶ ErrNoDevice    a library, and no device behind it
//	     └─▶ Driver ──▶ Context (one device) ──▶ memory, kernels
//
// Nothing happens when the package is initialised. Every status that is not success becomes an *Error with the library's own text.
// Goroutines move between threads, and the driver's context belongs to a thread: every call makes its context the thread's first.
// Without cgo, or on other systems than Linux, Load says ErrAbsent.
package driver
