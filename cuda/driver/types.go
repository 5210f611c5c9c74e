package driver

import "fmt"

// Pointer is an address in a device's memory; 0 is none.
type Pointer uint64

// Dim is a grid's or a block's size.
type Dim struct{ X, Y, Z uint32 }

// Info describes a device.
type Info struct {
	Ordinal         int
	Name            string
	Memory          int64 // bytes
	Major, Minor    int   // compute capability
	Multiprocessors int
	PCI             string // "0000:1b:00"
	SharedLimit     int    // bytes of shared memory that a block may ask for
}

// Arch names the device's real architecture for a compiler: "sm_90".
func (i Info) Arch() string { return fmt.Sprintf("sm_%d%d", i.Major, i.Minor) }

// String prints "device 0: NVIDIA H200, 139.8 GiB, sm_90, 132 multiprocessors, PCI 0000:1b:00".
func (i Info) String() string {
	return fmt.Sprintf("device %d: %s, %.1f GiB, %s, %d multiprocessors, PCI %s", i.Ordinal, i.Name, float64(i.Memory)/(1<<30), i.Arch(), i.Multiprocessors, i.PCI)
}

// Product is c [M N] = op(a) op(b) + beta c of row-major matrices.
type Product struct {
	BF16           bool // a and b; else float32
	Wide           bool // c is float32 though a and b are BF16
	M, N, K        int
	TransA, TransB bool
	Align          [3]uint32 // of a, b and c, in bytes
}

// Version prints NVIDIA's numbers: 12090 is 12.9.
type Version int

func (v Version) String() string { return fmt.Sprintf("%d.%d", int(v)/1000, int(v)%1000/10) }
