// Package cpu is the device that computes on the processor's own cores.
//
// Every operation of tensor.Device is cut into independent pieces, by rows or by columns, and shared
// out over a persistent team of threads; no result depends on where the cuts fall, so one thread and
// eight give the same bits. float32 is for training; float64 is the oracle that tests compare with.
//
//	caller ─┬─ rows 0..n/2 ────┐
//	        └─ team: n/2..n ───┴─ next operation
//
// Read next: gemm.go, where the time goes, and team.go.
package cpu
