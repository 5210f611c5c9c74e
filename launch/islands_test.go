package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"triax/mesh"
)

func grid(t *testing.T, degrees map[mesh.Axis]int) mesh.Mesh {
	t.Helper()
	m, err := mesh.New(nil, degrees)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func through(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// TestOnDevices: tensor groups stay inside islands, whatever the devices' numbers are.
func TestOnDevices(t *testing.T) {
	for _, c := range []struct {
		degrees map[mesh.Axis]int
		islands [][]int
		want    string
	}{
		{map[mesh.Axis]int{mesh.TP: 2, mesh.DP: 2}, [][]int{{0, 2}, {1, 3}}, "[0 2 1 3]"},
		{map[mesh.Axis]int{mesh.TP: 4, mesh.PP: 2}, [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}, "[0 1 2 3 4 5 6 7]"},
		{map[mesh.Axis]int{mesh.TP: 2, mesh.DP: 2}, [][]int{{0, 1, 2}, {3, 4}}, "[3 4 0 1]"}, // full ones first
		{map[mesh.Axis]int{mesh.DP: 3}, [][]int{{0}, {1}, {2}}, "[0 1 2]"},
	} {
		m := grid(t, c.degrees)
		got, err := OnDevices(m, through(m.Size()), c.islands)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%v on %v: %v, %v; want %s", m, c.islands, got, err, c.want)
		}
	}
}

// TestOnDevicesAlways: for every mesh and cut of eight devices, either no tensor group crosses islands and no device is used twice, or the error
// names a degree that then works.
func TestOnDevicesAlways(t *testing.T) {
	cuts := [][][]int{{{0, 1, 2, 3, 4, 5, 6, 7}}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}, {{0, 1, 2, 3}, {4, 5, 6, 7}}, {{0, 1, 2}, {3, 4, 5}, {6, 7}}, {{7}, {6}, {5}, {4}, {3}, {2}, {1}, {0}}}
	for _, islands := range cuts {
		for tp := 1; tp <= 8; tp *= 2 {
			for dp := 1; tp*dp <= 8; dp++ {
				m := grid(t, map[mesh.Axis]int{mesh.TP: tp, mesh.DP: dp})
				got, err := OnDevices(m, through(m.Size()), islands)
				if err != nil {
					_, after, _ := strings.Cut(err.Error(), "; tp = ")
					var fits int
					if _, scan := fmt.Sscan(after, &fits); scan != nil || fits >= tp {
						t.Fatalf("%v on %v: %v", m, islands, err)
					}
					if _, err := OnDevices(grid(t, map[mesh.Axis]int{mesh.TP: fits, mesh.DP: m.Size() / fits}), through(m.Size()), islands); err != nil {
						t.Errorf("%v on %v: tp = %d was said to fit: %v", m, islands, fits, err)
					}
					continue
				}
				if s := slices.Sorted(slices.Values(got)); len(slices.Compact(s)) != m.Size() {
					t.Fatalf("%v on %v: a device twice: %v", m, islands, got)
				}
				for _, g := range m.Groups(mesh.TP) {
					home := slices.IndexFunc(islands, func(x []int) bool { return slices.Contains(x, got[g[0]]) })
					for _, r := range g {
						if !slices.Contains(islands[home], got[r]) {
							t.Errorf("%v on %v: group %v is on devices of different islands: %v", m, islands, g, got)
						}
					}
				}
			}
		}
	}
}

// TestTooManyRanks: more ranks than devices are refused.
func TestTooManyRanks(t *testing.T) {
	m := grid(t, map[mesh.Axis]int{mesh.DP: 3})
	if _, err := OnDevices(m, through(3), [][]int{{0, 1}}); err == nil || !strings.Contains(err.Error(), "at most 2 a host") {
		t.Errorf("%v", err)
	}
}
