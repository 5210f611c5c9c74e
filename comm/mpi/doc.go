// Package mpi is the transport between ranks that are processes, on one host or many, over an MPI library found at run time.
//
// Nothing of MPI is needed to build: shim.c has its own prototypes, opens the library with dlopen, and tells Open MPI, the MPICH family
// (MPICH, Intel, MVAPICH, Cray) and the standard ABI of MPI 5 apart by what they export. One binary serves all.
//
//	ranks' goroutines            the engine: one thread makes all MPI calls
//	AllReduce, Recv ... ──▶ commands ──▶ post ─▶ poll ─▶ post what follows ─▶ end the call
//	                                              ▲
//	          other processes ── notes: messages' heads, joins, stops, roll calls
//
// Every group has a communicator of its own, made up front. A collective has two phases, both non-blocking: members first gather what each
// is about to call, so that calls that do not fit together are one error on all of them and waiting for peers is booked apart from moving
// data; then the library's own collective runs. A message is a note with its tag and shape, and the data under a tag of its own. No call is
// larger than maxCount elements, since MPI counts with int.
//
// Every wait ends with its context. Memory that the library may still write to is then kept for good, and the group cannot be used again: a
// run that is stopped is over. Reductions add in the library's order, which is the same on all members, not in the order of places; bfloat16,
// which MPI does not know, is exchanged and added here, in the order of places, rounded once.
//
// Cost: a collective takes one small all-gather more than the library's. The engine's thread polls while calls are under way, and looks in
// every few milliseconds otherwise. Built without cgo, Open says so and there is nothing else.
//
// Read next: engine.go, then group.go and message.go; package comm for the contract.
package mpi
