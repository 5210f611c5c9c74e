// Package tensor has the arrays that everything else passes around, and the interface of the
// devices that compute with them.
//
// A Tensor is a dense, row-major block of memory with a reference count; a Heap is one rank's memory
// with a ledger by Kind; a Device is a rank's heap and kernels. Layers are written against Device
// only, so the float64 CPU device (the oracle that tests compare with), the fast float32 CPU device and a GPU
// run the same model code.
//
//	base ──▶ [ w0 w1 w2 w3 | b0 b1 ]      one allocation, one count
//	View      └ [2 2] ─────┘ └ Flat(4, 6)  views cost nothing and own nothing
//
// Read next: package cpu, and package nn, which uses all of this.
package tensor
