//go:build !(cgo && linux)

package driver

import "fmt"

// Driver is the driver's library; there is none in this build.
type Driver struct {
	Path    string
	Version Version
}

// Compiler is the run-time compiler's library; there is none in this build.
type Compiler struct {
	Path    string
	Version Version
}

// BLAS is the matrix library; there is none in this build.
type BLAS struct {
	Path    string
	Version int
}

// LoadBLAS says ErrAbsent.
func LoadBLAS([]string) (*BLAS, error) { return nil, unbuilt("blas") }

// Load says ErrAbsent: libraries are opened through cgo, on Linux.
func Load([]string) (*Driver, error) { return nil, unbuilt("driver") }

// LoadCompiler says ErrAbsent.
func LoadCompiler([]string) (*Compiler, error) { return nil, unbuilt("compiler") }

// Devices describes all devices: none.
func (*Driver) Devices() ([]Info, error) { return nil, unbuilt("driver") }

// Compile says ErrAbsent.
func (*Compiler) Compile(string, string, []string) ([]byte, error) { return nil, unbuilt("compiler") }

func unbuilt(library string) error {
	return fmt.Errorf("%s: %w: this program was built without cgo, or not for Linux", library, ErrAbsent)
}
