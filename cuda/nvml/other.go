//go:build !(cgo && linux)

package nvml

import (
	"fmt"

	"triax/cuda/driver"
)

// Library is the management library; there is none in this build.
type Library struct{ none struct{} }

// Open says driver.ErrAbsent.
func Open(string) (*Library, error) {
	return nil, fmt.Errorf("nvml: %w: this program was built without cgo, or not for Linux", driver.ErrAbsent)
}

// Machine finds nothing: there is no Library to call it on.
func (*Library) Machine() (Machine, error) { panic("nvml: no library") }

// Usage finds nothing: there is no Library to call it on.
func (*Library) Usage() ([]Usage, error) { panic("nvml: no library") }

// Close does nothing.
func (*Library) Close() error { return nil }
