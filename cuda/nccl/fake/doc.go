// Package fake builds a library with NCCL's calls, for ranks that are threads of one process, on the host's memory. With it the binding and the
// transport are run for real on machines without a device; what it cannot show is speed, and what the real library and devices do.
//
// It refuses what the real library leaves undefined: calls that do not fit together, a communicator used before the library is through with the
// last operation on it, two threads on one communicator. Streams are threads; they can be made to share one per device, the worst that a device may do.
package fake
