// Package local is the transport between ranks that are goroutines of one process.
//
// Collectives work in shared memory: every member shows the others its tensors, all meet, each does its own slice of the work
// reading the others' memory in place, and all meet again before anyone goes on. Sums are taken in the order of places by
// whoever owns the slice, so all members get the same bits. Messages hand over ownership of the memory and copy nothing.
//
//	rank 0   show ─┐       ┌─ slice 0: a[0] = b[0] = a[0] + b[0] ─┐
//	               ├─ meet ┤                                      ├─ meet ─▶
//	rank 1   show ─┘       └─ slice 1: a[1] = b[1] = a[1] + b[1] ─┘
//
// The first meeting can be given up when a run is stopped: then none of the members meet, nobody touches another's memory, and the
// group cannot be used again. Once it has taken place nobody waits for anything before the second, which therefore cannot be
// given up, so no rank gives memory back while another reads it. Between the two meetings all members compare what was called, and
// all come to the same verdict: calls that do not fit together are one error on all of them.
//
// Cost: an all-reduce of n bytes among g ranks reads g n and writes g n bytes of memory, shared by g goroutines. A slice is worked on
// in blocks that stay in the first-level cache, so memory bandwidth is the limit for large tensors, and two meetings for small
// ones: a member that waits looks for half a microsecond if every rank has a core, then parks. Nothing is allocated after the
// first call. The options that play slower or stricter networks cost what they play.
//
// Read next: meeting.go, then group.go and reduce.go; package comm, whose Group adds the ledger; comm/commtest, which
// every transport passes.
package local
