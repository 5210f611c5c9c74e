//go:build !unix

package safetensors

import (
	"io"
	"os"
)

// forget does nothing where the file was read.
func forget([]byte) error { return nil }

// mapFile reads the file where it cannot be mapped.
func mapFile(f *os.File, size int64) (raw []byte, unmap func() error, err error) {
	raw, err = io.ReadAll(io.LimitReader(f, size))
	return raw, func() error { return nil }, err
}
