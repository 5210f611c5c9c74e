package mesh

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func mustNew(t testing.TB, order []Axis, degrees map[Axis]int) Mesh {
	t.Helper()
	m, err := New(order, degrees)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var orders = [][]Axis{nil, {PP, DP, TP}, {TP, DP, PP}, {CP, EP, TP, Replicate, PP, DP}}

// TestCoordinates: rank and coordinates are inverses for any degrees in any order, and the last axis of the order is the fastest.
func TestCoordinates(t *testing.T) {
	for _, order := range orders {
		for pp := 1; pp <= 3; pp++ {
			for dp := 1; dp <= 5; dp += 2 {
				for tp := 1; tp <= 3; tp++ {
					m := mustNew(t, order, map[Axis]int{PP: pp, DP: dp, TP: tp, EP: 2})
					if m.Size() != pp*dp*tp*2 {
						t.Fatalf("%v: %d ranks", m, m.Size())
					}
					seen := map[Coord]bool{}
					for r := range m.Size() {
						c := m.Coord(r)
						if m.Rank(c) != r || seen[c] {
							t.Fatalf("%v: rank %d at %v is rank %d", m, r, c, m.Rank(c))
						}
						seen[c] = true
					}
					last := m.Order()[len(m.Order())-1]
					if m.Degree(last) > 1 && m.Coord(1)[last] != 1 {
						t.Errorf("%v in order %v: rank 1 is at %v", m, m.Order(), m.Coord(1))
					}
				}
			}
		}
	}
}

// TestB77GroupsPartition: the groups over any axes cut the ranks into equal parts; all members of a group see the same list in the same
// order, and groups are listed in one order on all ranks.
func TestB77GroupsPartition(t *testing.T) {
	for _, order := range orders {
		m := mustNew(t, order, map[Axis]int{PP: 2, DP: 3, TP: 2, CP: 2, Replicate: 2})
		for _, axes := range [][]Axis{{TP}, {DP}, {DP, CP}, {Replicate, DP, EP, CP}, {PP}, DefaultOrder, {}} {
			size := 1
			for _, a := range axes {
				size *= m.Degree(a)
			}
			count := make([]int, m.Size())
			for _, g := range m.Groups(axes...) {
				if len(g) != size {
					t.Errorf("%v over %v: a group of %d, want %d", m, axes, len(g), size)
				}
				for place, r := range g {
					count[r]++
					if p := m.Peers(r, axes...); !slices.Equal(p, g) || p[place] != r {
						t.Errorf("%v over %v: rank %d sees %v, rank %d sees %v", m, axes, r, p, g[0], g)
					}
				}
			}
			for r, n := range count {
				if n != 1 {
					t.Errorf("%v over %v: rank %d is in %d groups", m, axes, r, n)
				}
			}
		}
	}
}

func TestNewNamesEveryProblem(t *testing.T) {
	_, err := New([]Axis{DP, TP, DP}, map[Axis]int{PP: 0, TP: -2})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"dp", "pp", "tp", "-2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestParseAxis(t *testing.T) {
	for a := range NumAxes {
		if got, err := ParseAxis(Axis(a).String()); err != nil || got != Axis(a) {
			t.Errorf("%v reads back as %v, %v", Axis(a), got, err)
		}
	}
	if _, err := ParseAxis("zp"); err == nil || !strings.Contains(err.Error(), "zp") {
		t.Errorf("zp: %v", err)
	}
}

func ExampleMesh() {
	m, _ := New([]Axis{PP, DP, TP}, map[Axis]int{PP: 2, DP: 2, TP: 2})
	fmt.Println(m)
	fmt.Println("rank 5 is", m.Place(5))
	fmt.Println("its tensor peers", m.Peers(5, TP))
	fmt.Println("its pipeline", m.Peers(5, PP))
	fmt.Println("all data groups", m.Groups(DP))
	// Output:
	// pp2 x dp2 x tp2
	// rank 5 is dp0 pp1 tp1
	// its tensor peers [4 5]
	// its pipeline [1 5]
	// all data groups [[0 2] [1 3] [4 6] [5 7]]
}
