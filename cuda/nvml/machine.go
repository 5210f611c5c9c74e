package nvml

import (
	"fmt"
	"slices"
	"strings"
)

// Machine is what was found.
type Machine struct {
	Driver  string // version of the driver: "580.65.06"
	CUDA    string // newest CUDA that the driver runs: "13.0"
	Devices []Device
	// Paths[i][j] is how devices i and j are joined.
	Paths [][]Path
}

// Device is one of a machine's devices.
type Device struct {
	Name         string
	UUID         string
	PCI          string // "0000:1b:00.0"; "" where the driver hides it
	Memory       int64  // bytes
	Major, Minor int    // compute capability
	MIG          bool   // cut into instances, each of which would be a device of its own
	Links        int    // NVLinks that are up
	Generation   int    // of PCI Express; 0 where unknown
	Lanes        int
	Watts        float64 // the limit of its power; 0 where unknown
}

// Path is how two devices are joined: by NVLinks, their number, or over the bus.
type Path struct {
	Links int
	Bus   Bus
}

// Bus is what two devices' way over the bus leads through, nearest first. The values are the library's.
type Bus int

const (
	Internal   Bus = 0  // two halves of one board
	Switch     Bus = 10 // one switch of PCI Express
	Switches   Bus = 20 // several, but no host bridge
	HostBridge Bus = 30
	Node       Bus = 40 // between host bridges of one NUMA node
	System     Bus = 50 // between NUMA nodes
	Unknown    Bus = -1
)

// String is nvidia-smi's word for it.
func (b Bus) String() string {
	switch b {
	case Internal:
		return "PSB"
	case Switch:
		return "PIX"
	case Switches:
		return "PXB"
	case HostBridge:
		return "PHB"
	case Node:
		return "NODE"
	case System:
		return "SYS"
	}
	return "?"
}

// String prints "NV18" or the bus.
func (p Path) String() string {
	if p.Links > 0 {
		return fmt.Sprintf("NV%d", p.Links)
	}
	return p.Bus.String()
}

// String prints "NVIDIA H200, 150.8 GB, compute capability 9.0, NVLink x18, PCIe 5 x16, 700 W, 0000:1b:00.0".
func (d Device) String() string {
	words := []string{d.Name, fmt.Sprintf("%.1f GB", float64(d.Memory)/1e9), fmt.Sprintf("compute capability %d.%d", d.Major, d.Minor)}
	if d.Links > 0 {
		words = append(words, fmt.Sprintf("NVLink x%d", d.Links))
	}
	if d.Generation > 0 {
		words = append(words, fmt.Sprintf("PCIe %d x%d", d.Generation, d.Lanes))
	}
	if d.Watts > 0 {
		words = append(words, fmt.Sprintf("%.0f W", d.Watts))
	}
	if d.PCI != "" {
		words = append(words, d.PCI)
	}
	if d.MIG {
		words = append(words, "cut into MIG instances")
	}
	return strings.Join(words, ", ")
}

// Islands are the devices by what NVLink joins, each in order: all of an island reach one another directly. An island is a
// greatest set of that kind, found from the lowest device on.
func (m Machine) Islands() (islands [][]int) {
	for i := range m.Devices {
		at := slices.IndexFunc(islands, func(members []int) bool {
			return !slices.ContainsFunc(members, func(j int) bool { return m.Paths[j][i].Links == 0 })
		})
		if at < 0 {
			islands, at = append(islands, nil), len(islands)
		}
		islands[at] = append(islands[at], i)
	}
	return islands
}

// String is a line a device, the matrix of paths where there are several, and the islands.
func (m Machine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "driver %s, CUDA up to %s\n", m.Driver, m.CUDA)
	for i, d := range m.Devices {
		fmt.Fprintf(&b, "  %d  %v\n", i, d)
	}
	if len(m.Devices) < 2 {
		return b.String()
	}
	b.WriteString("     ")
	for j := range m.Devices {
		fmt.Fprintf(&b, "%6d", j)
	}
	b.WriteByte('\n')
	for i := range m.Devices {
		fmt.Fprintf(&b, "  %3d", i)
		for j, p := range m.Paths[i] {
			if i == j {
				b.WriteString("     X")
				continue
			}
			fmt.Fprintf(&b, "%6v", p)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "joined by NVLink: %v\n", m.Islands())
	return b.String()
}
