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

// CompileLog says ErrAbsent.
func (*Compiler) CompileLog(string, string, []string) ([]byte, string, error) {
	return nil, "", unbuilt("compiler")
}

func unbuilt(library string) error {
	return fmt.Errorf("%s: %w: this program was built without cgo, or not for Linux", library, ErrAbsent)
}

// Context is one device's memory and work; there is none in this build.
type Context struct{ Info Info }

// Function is a kernel of a loaded module.
type Function int

// Event is a point in the order of the work.
type Event struct{}

// Products runs products; there is none in this build.
type Products struct{}

// The rest says ErrAbsent.

func (*Driver) Bind(int) (*Context, error)          { return nil, unbuilt("driver") }
func (*Context) Close() error                       { return unbuilt("driver") }
func (*Context) Alloc(int64) (Pointer, error)       { return 0, unbuilt("driver") }
func (*Context) Free(Pointer) error                 { return unbuilt("driver") }
func (*Context) Left() (int64, error)               { return 0, unbuilt("driver") }
func (*Context) Pinned(int) ([]byte, error)         { return nil, unbuilt("driver") }
func (*Context) Unpin([]byte) error                 { return unbuilt("driver") }
func (*Context) CopyIn(Pointer, []byte) error       { return unbuilt("driver") }
func (*Context) CopyOut([]byte, Pointer) error      { return unbuilt("driver") }
func (*Context) Move(Pointer, Pointer, int64) error { return unbuilt("driver") }
func (*Context) Set(Pointer, byte, int64) error     { return unbuilt("driver") }
func (*Context) Sync() error                        { return unbuilt("driver") }
func (*Context) Load([]byte, []string, int) (map[string]Function, error) {
	return nil, unbuilt("driver")
}
func (*Context) Launch(Function, Dim, Dim, int, []byte) error           { return unbuilt("driver") }
func (*Context) NewEvent() (Event, error)                               { return Event{}, unbuilt("driver") }
func (*Context) Record(Event) error                                     { return unbuilt("driver") }
func (*Context) Await(Event) error                                      { return unbuilt("driver") }
func (*Context) Forget(Event) error                                     { return unbuilt("driver") }
func (*BLAS) NewProducts(*Context, Pointer, int64) (*Products, error)   { return nil, unbuilt("blas") }
func (*Products) Close() error                                          { return unbuilt("blas") }
func (*Products) Run(Product, Pointer, Pointer, Pointer, float32) error { return unbuilt("blas") }
