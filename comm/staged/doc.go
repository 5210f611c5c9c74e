// Package staged carries a device's memory over a transport that only reads host memory: what is sent is fetched into host memory first, and what
// is received is placed into the device's afterwards.
//
//	device ──Fetch──▶ host ──inner transport──▶ host ──Place──▶ device
//
// It is what ranks on devices use where no transport of the devices' own is there: two ranks that share a GPU, or GPUs beside MPI
// without NCCL. Sums are taken by the inner transport, in host memory, in its order: every device gets the same bits.
//
// Cost: every byte crosses the bus to the device twice, one after the other with the transfer. Copies count as moving, not as waiting.
package staged
