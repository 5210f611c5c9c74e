// Package local is the transport between ranks that are goroutines of one process.
//
// Collectives work in shared memory: every member shows the others its tensors, all meet, each does its own slice of the work
// reading the others' memory in place, and all meet again before anyone goes on.
//
//	rank 0   show ─┐       ┌─ slice 0: a[0] = b[0] = a[0] + b[0] ─┐
//	               ├─ meet ┤                                      ├─ meet ─▶
//	rank 1   show ─┘       └─ slice 1: a[1] = b[1] = a[1] + b[1] ─┘
//
// Sums are taken in the order of places by whoever owns the slice, so all members get the same bits. The first meeting can be
// given up when a run is stopped; once it has taken place nobody blocks before the second, so no rank's memory is
// given back while another reads it. Point-to-point messages hand over ownership of the memory and copy nothing.
//
// Cost of an all-reduce of n bytes among g ranks: each reads n and writes n, in g threads. Read next: package comm, whose Group adds
// the ledger, and commtest, which every transport passes.
package local
