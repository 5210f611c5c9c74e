// Package nccl is the transport between ranks that are NVIDIA devices, one a process, over NCCL; any memory that a Device here knows will do.
//
// All calls of a rank into the library come from one thread, its engine. The library hangs when ranks issue in different orders, on one
// communicator or across those of a device, so there is one line of all that moves between ranks, and every engine issues what
// concerns its rank in the order of that line:
//
//	rank's goroutines ── "I am at call 7 of tp" ──▶ hub ── when all members are: "call 7 of tp" ──▶ engines ── Issue ──▶ device
//	                  ── "here is a message" ─────▶  (on rank 0's host, TCP) ── "message 12" ─────▶
//
// Of what is left on the line the earliest entry is next for all ranks that it concerns, so it can always run, even where a device runs
// one of these kernels at a time. The hub also makes known what each member calls, so that calls that do not fit together are one error on all
// of them; tells the time waiting for peers from that moving data; introduces ranks to each other; and notes at once when a rank is gone.
// It costs a round trip to rank 0's host a call. Where the caller itself gives calls in one order on all ranks, InOrder leaves the hub out of
// collectives, and a Plan leaves it out of messages.
//
// A wait that is given up aborts this rank's communicators, since the library cannot take back a single call, and only then
// is memory given back. Reductions add in the library's order, the same bits on all members; bfloat16 is rounded at every addition, and a
// maximum may lose NaN.
//
// Read next: hub.go, then engine.go, group.go and message.go; package comm for the contract, cuda/nccl for the library's rules.
package nccl
