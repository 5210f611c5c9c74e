package nccl

import (
	"fmt"

	"triax/cuda/driver"
)

// ID names a communicator that is to be made; every rank has the same.
type ID [128]byte

// Version is the library's: 23003 is 2.30.3.
type Version int

// String prints "2.30.3".
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", int(v)/10000, int(v)/100%100, int(v)%100)
}

// Ordered says that the library can make the order of issue the order on the device, across communicators.
func (v Version) Ordered() bool { return v >= 22600 }

// Kind is what an operation does.
type Kind int32

const (
	AllReduce Kind = iota
	ReduceScatter
	AllGather
	Broadcast
	Send
	Recv
)

// String is the library's name of the call.
func (k Kind) String() string {
	return [...]string{"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv"}[k]
}

// Type is the library's number for a type of elements.
type Type int32

const (
	Int8     Type = 0
	Int32    Type = 2
	Float32  Type = 7
	Float64  Type = 8
	BFloat16 Type = 9
)

// Reduction is the library's number for one.
type Reduction int32

const (
	Sum Reduction = 0
	Max Reduction = 2
)

// Op is one operation of a group.
type Op struct {
	Kind      Kind
	Comm      *Comm
	Stream    uintptr // the driver's, or 0
	Send      driver.Pointer
	Recv      driver.Pointer
	Count     uint64 // elements: of AllReduce and Broadcast the whole, of ReduceScatter the result, of AllGather what each gives
	Type      Type
	Reduction Reduction
	Peer      int // the root of a Broadcast, the other rank of a message
}
