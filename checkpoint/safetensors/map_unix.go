//go:build unix

package safetensors

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget drops the pages from this process's memory; the file, and what the system keeps of it, stay.
func forget(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	return unix.Madvise(raw, unix.MADV_DONTNEED)
}

// mapFile is the file as read-only memory.
func mapFile(f *os.File, size int64) (raw []byte, unmap func() error, err error) {
	raw, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return raw, func() error { return unix.Munmap(raw) }, err
}
