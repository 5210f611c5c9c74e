//go:build !linux

package zero

import (
	"errors"
	"os"
)

func mapFile(*os.File, int) ([]byte, error) {
	return nil, errors.New(`built for Linux only; use zero.offload = "none"`)
}

func dropPages([]byte, int, int) error { return nil }

func unmapFile([]byte) error { return nil }
