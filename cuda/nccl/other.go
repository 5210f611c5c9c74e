//go:build !(cgo && linux)

package nccl

import (
	"fmt"

	"triax/cuda/driver"
)

// Library is NCCL; there is none in this build.
type Library struct {
	Path    string
	Version Version
}

// Comm is one rank's end of a communicator.
type Comm struct{ Size, Rank int }

// NoColor is the color of ranks that are in no part of a Split.
const NoColor = -1

var errUnbuilt = fmt.Errorf("nccl: %w: this program was built without cgo, or not for Linux", driver.ErrAbsent)

// Load says driver.ErrAbsent, and so does everything else.
func Load([]string) (*Library, error) { return nil, errUnbuilt }

func (*Library) UniqueID() (ID, error)                     { return ID{}, errUnbuilt }
func (*Library) Init(ID, int, int, int) (*Comm, error)     { return nil, errUnbuilt }
func (*Library) Issue([]Op) error                          { return errUnbuilt }
func (*Comm) Split(int, int, int, int, int) (*Comm, error) { return nil, errUnbuilt }
func (*Comm) State() (bool, error)                         { return false, errUnbuilt }
func (*Comm) Finalize() error                              { return errUnbuilt }
func (*Comm) Destroy() error                               { return errUnbuilt }
func (*Comm) Abort() error                                 { return errUnbuilt }
