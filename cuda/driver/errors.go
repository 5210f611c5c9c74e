package driver

import (
	"errors"
	"fmt"
)

// ErrAbsent: no such library could be opened. ErrNoDevice: the driver's library is there and knows of no device.
var (
	ErrAbsent   = errors.New("library not found")
	ErrNoDevice = errors.New("no NVIDIA device")
)

// Error is a call that a library refused.
type Error struct {
	Library string // "driver", "compiler", "blas"
	Call    string // "cuMemAlloc"
	Code    int
	Text    string // the library's own
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %s (%d)", e.Library, e.Call, e.Text, e.Code)
}

// OutOfMemory says whether err is the driver's for an allocation too large (CUDA_ERROR_OUT_OF_MEMORY).
func OutOfMemory(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Library == "driver" && e.Code == 2
}

// absent is ErrAbsent with what was tried.
func absent(library string, paths []string, last string) error {
	if last == "" {
		return fmt.Errorf("%s: %w; tried %v", library, ErrAbsent, paths)
	}
	return fmt.Errorf("%s: %w; tried %v; the last said: %s", library, ErrAbsent, paths, last)
}
