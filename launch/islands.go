package launch

import (
	"fmt"
	"slices"

	"triax/mesh"
)

// OnDevices gives each of a host's ranks a device: result[i] is that of ranks[i]. islands are the host's devices by what fast links join
// (NVLink). Ranks of one tensor group, which communicate inside every layer, stay in one island, and groups fill islands in the order of
// their ranks, so that neighbours on the next axis are near too. It fails where devices or room in islands are too few.
func OnDevices(m mesh.Mesh, ranks []int, islands [][]int) ([]int, error) {
	devices := 0
	for _, island := range islands {
		devices += len(island)
	}
	if len(ranks) > devices {
		return nil, fmt.Errorf("%d ranks on a host of %d devices: one rank a device; start at most %d a host", len(ranks), devices, devices)
	}
	var groups [][]int // places in ranks
	for _, all := range m.Groups(mesh.TP) {
		var here []int
		for _, r := range all {
			if i := slices.Index(ranks, r); i >= 0 {
				here = append(here, i)
			}
		}
		if len(here) > 0 {
			groups = append(groups, here)
		}
	}
	left := slices.Clone(islands)
	out := make([]int, len(ranks))
	for _, g := range groups {
		at := roomFor(len(g), left)
		if at < 0 {
			return nil, tooWide(m, groups, islands)
		}
		for i, place := range g {
			out[place] = left[at][i]
		}
		left[at] = left[at][len(g):]
	}
	return out, nil
}

// roomFor is the first island that has room for n and would be left with what another group of n cannot use least: full multiples of n first.
func roomFor(n int, left [][]int) int {
	at := -1
	for i, island := range left {
		if len(island) >= n && (at < 0 || len(island)%n < len(left[at])%n) {
			at = i
		}
	}
	return at
}

// tooWide names the largest tensor degree that would fit.
func tooWide(m mesh.Mesh, groups, islands [][]int) error {
	sizes := make([]int, len(islands))
	for i, island := range islands {
		sizes[i] = len(island)
	}
	ranks := 0
	for _, g := range groups {
		ranks += len(g)
	}
	degree := m.Degree(mesh.TP)
	best := 1
	for t := 2; t < degree; t++ {
		room := 0
		for _, n := range sizes {
			room += n / t * t
		}
		if degree%t == 0 && room >= ranks {
			best = t
		}
	}
	return fmt.Errorf("mesh.tp = %d: a tensor group would cross islands of NVLink, which join %v devices here; tp = %d fits in them", degree, sizes, best)
}
