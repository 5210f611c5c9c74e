// Package cuda is the device of NVIDIA's GPUs: own kernels (package kernels) compiled at start, products by cuBLASLt, memory and
// launches by the driver's library (package driver).
//
//	rank's goroutine ──work──▶ owner, locked to a thread of the system ──▶ Context ──▶ device
//	                 ◀─values─
//
// Work is given in order and not waited for, but where a method returns values. A failure is kept, all work after it is dropped, and Sync
// says it; a method that has no values to give then panics with it.
//
// On the emulated libraries of package emu the same code runs without a GPU: that is how it is tested. It has not yet been run on a GPU.
package cuda
