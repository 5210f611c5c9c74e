package cpu

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages. The request is a hint: a system that has none still gives right results.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
