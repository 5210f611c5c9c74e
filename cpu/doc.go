// Package cpu is the device that computes on the processor's own cores.
//
// Every operation of tensor.Device is cut into independent pieces, by rows or by columns, and shared out over a persistent team
// of threads; no result depends on where the cuts fall, so one thread and eight give the same bits. float32 is for training
// and runs on kernels in AVX-512 or AVX2 assembly, chosen when the device is made; float64 is the oracle that tests compare with. Plain Go
// is there for every kernel, is what other processors run, and defines what the assembly must compute. bfloat16 is float32 whose
// parameters and activations take two bytes (half.go).
//
// Most of the time goes into matrix multiplication (Goto & van de Geijn 2008):
//
//	c [m n] = op(a) op(b)          n is cut into pieces, threads take them from both ends
//
//	            k                       1 2 3 ┊ 3 2 1
//	    ┌───────────────┐             ┌─┬─┬─┬─┬─┬─┬─┬─┐
//	    │▒▒▒▒▒│         │             │▓│ │ │ │ │ │ │ │  384 of k, 192 columns: packed by its
//	  m │▒▒▒▒▒│  op(a)  │          k  ├─┤ │ │ op(b) │ │  thread, second-level cache
//	    │─────┘         │             │ │ │ │ │ │ │ │ │
//	    └───────────────┘             └─┴─┴─┴─┴─┴─┴─┴─┘
//	  op(a) is packed once by all     a tile of 8 x 48 of c stays in 24 registers
//	  threads together, third-level   while 384 of k pass: per step of k one row of
//	  cache; 256 rows at a time in    b (3 vectors) and 8 broadcasts of a, 24
//	  the second-level cache          multiply-adds
//
// Where m is the longer side, a and b change places. While a tile is computed it asks for the block of b that is packed next. What it
// costs: a multiplication reaches about 90 % of the multiply-add rate (Peak), little less where operands come from memory; with BF16
// 1.8 times that. Everything else is limited by the caches, or by memory. Handing over to a thread that waits takes about a microsecond,
// to one that sleeps a hundred, so small operations stay on the caller's thread.
//
// Read next: gemm_tiled.go, where the time goes; team.go; gen, which writes the assembly.
package cpu

//go:generate go run ./gen .
