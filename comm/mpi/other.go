//go:build !(cgo && linux)

package mpi

import (
	"context"
	"errors"
	"time"

	"triax/comm"
	"triax/tensor"
)

// World is this process's place among processes; there is none in this build.
type World struct{}

// RemoteError is the failure of another rank, as it told it.
type RemoteError struct {
	Rank int
	Text string
}

func (e *RemoteError) Error() string { return e.Text }

// Open says that this build has no MPI: the library is opened through cgo, on Linux.
func Open(string, int) (*World, error) {
	return nil, errors.New("this triax was built without cgo, and MPI is opened through it; build it on Linux with CGO_ENABLED=1, or let ranks be goroutines of one process")
}

// What a World of processes answers; without Open there is none.
func (*World) Size() int                             { return 0 }
func (*World) Rank() int                             { return 0 }
func (*World) Library() string                       { return "" }
func (*World) Report(func() string)                  {}
func (*World) Failed() <-chan struct{}               { return nil }
func (*World) Cause() error                          { return nil }
func (*World) Stop(error)                            {}
func (*World) Close() error                          { return nil }
func (*World) Transport(*tensor.Heap) comm.Transport { return nil }

func (*World) RollCall([]int, time.Duration) map[int]string  { return nil }
func (*World) Agree(context.Context, string) (string, error) { return "", errors.New("no world") }
