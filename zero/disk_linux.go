package zero

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile reserves size bytes for f and maps them, shared with the file.
func mapFile(f *os.File, size int) ([]byte, error) {
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// dropPages takes the whole pages of raw[lo:hi] out of this process; what was written there goes to the file in the system's own time.
func dropPages(raw []byte, lo, hi int) error {
	page := os.Getpagesize()
	if lo = (lo + page - 1) / page * page; hi < len(raw) {
		hi = hi / page * page
	}
	if lo >= hi {
		return nil
	}
	return unix.Madvise(raw[lo:hi], unix.MADV_DONTNEED)
}

func unmapFile(raw []byte) error { return unix.Munmap(raw) }
