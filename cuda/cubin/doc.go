// Package cubin reads what compiled kernels ask of a device: registers, memory on the stack, shared memory, size of code. It reads modules
// (ELF files) and the assembler's log, and compiles all kernels of this program for the report.
//
//	kernels/*.cu ──NVRTC──▶ module ──Read──▶ []Kernel ─┐
//	                   └──▶ log ────ReadLog─▶ spills ──┴─▶ Compile ─▶ Report
//
// Neither a device nor a driver is needed, so this is how kernels are held against NVIDIA's own compiler on machines without either.
package cubin
