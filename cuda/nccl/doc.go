// Package nccl calls NVIDIA's collective library, opened at run time by prototypes of our own; nothing of NVIDIA's is needed to build.
//
//	Load ──▶ driver.ErrAbsent
//	     └─▶ Library ── UniqueID ─▶ 128 bytes, told to all ranks ── Init ─▶ Comm ── Split ─▶ Comm
//	              └──── Issue(ops) ─▶ one group: all of its operations progress together
//
// The library keeps the group that is being built in the thread, so a group is one call into C here, and never left open. Communicators
// do not block: making one, or issuing on one, may go on in the background, and Comm.State tells when it is over; so a wait can be given up, by Abort.
//
// The library's rules, which the caller keeps: all ranks issue the same collectives on a communicator in the same order; one thread at a time issues on
// a device; where several communicators share a device, their order is the same on all ranks too (NCCL_LAUNCH_ORDER_IMPLICIT, since 2.26); the first
// operation between two ranks connects them, so both must come to it.
//
// Package fake is a library with these calls for ranks that are threads of this process, on host memory.
package nccl
