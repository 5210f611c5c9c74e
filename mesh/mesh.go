package mesh

import (
	"errors"
	"fmt"
	"strings"
)

// Mesh is the grid of ranks: a degree for each axis and the order in which ranks count through them.
// The last axis of the order varies fastest, so its peers are adjacent ranks.
// The zero value is not useful; make one with New. A Mesh is immutable and may be copied.
type Mesh struct {
	order  []Axis
	degree [NumAxes]int
}

// Coord is a rank's place on every axis.
type Coord [NumAxes]int

// New makes a mesh. An axis absent from degrees has degree 1; axes absent from order are
// placed first, in DefaultOrder. It fails, naming all problems, on a degree below 1 or a repeated axis.
func New(order []Axis, degrees map[Axis]int) (Mesh, error) {
	var m Mesh
	var errs []error
	seen := map[Axis]bool{}
	for _, a := range order {
		if int(a) >= NumAxes {
			errs = append(errs, fmt.Errorf("mesh: unknown %v in order", a))
			continue
		}
		if seen[a] {
			errs = append(errs, fmt.Errorf("mesh: axis %v stands twice in order", a))
		}
		seen[a] = true
	}
	for _, a := range DefaultOrder {
		if !seen[a] {
			m.order = append(m.order, a)
		}
	}
	m.order = append(m.order, order...)
	for i := range m.degree {
		m.degree[i] = 1
	}
	for a, d := range degrees {
		if int(a) >= NumAxes {
			errs = append(errs, fmt.Errorf("mesh: unknown %v", a))
			continue
		}
		if d < 1 {
			errs = append(errs, fmt.Errorf("mesh: %v = %d: a degree is at least 1", a, d))
			continue
		}
		m.degree[a] = d
	}
	if err := errors.Join(errs...); err != nil {
		return Mesh{}, err
	}
	return m, nil
}

// Degree is the number of ranks along an axis.
func (m Mesh) Degree(a Axis) int { return m.degree[a] }

// Order lists all axes, slowest first.
func (m Mesh) Order() []Axis { return append([]Axis(nil), m.order...) }

// Size is the number of ranks: the product of all degrees.
func (m Mesh) Size() int {
	n := 1
	for _, d := range m.degree {
		n *= d
	}
	return n
}

// Coord is the place of a rank, 0 <= rank < Size.
func (m Mesh) Coord(rank int) Coord {
	if rank < 0 || rank >= m.Size() {
		panic(fmt.Sprintf("mesh: rank %d outside 0..%d", rank, m.Size()-1))
	}
	var c Coord
	for i := len(m.order) - 1; i >= 0; i-- {
		a := m.order[i]
		c[a] = rank % m.degree[a]
		rank /= m.degree[a]
	}
	return c
}

// Rank is the inverse of Coord.
func (m Mesh) Rank(c Coord) int {
	rank := 0
	for _, a := range m.order {
		if c[a] < 0 || c[a] >= m.degree[a] {
			panic(fmt.Sprintf("mesh: %v coordinate %d outside 0..%d", a, c[a], m.degree[a]-1))
		}
		rank = rank*m.degree[a] + c[a]
	}
	return rank
}

// Peers lists the ranks that differ from rank only in the given axes, rank itself included.
// They are ordered by their coordinates, the first of the given axes slowest, so the position
// of a rank in the list is its place in the group and is the same seen from every member.
func (m Mesh) Peers(rank int, axes ...Axis) []int {
	peers := []Coord{m.Coord(rank)}
	for _, a := range axes {
		var next []Coord
		for _, c := range peers {
			for i := range m.degree[a] {
				c[a] = i
				next = append(next, c)
			}
		}
		peers = next
	}
	ranks := make([]int, len(peers))
	for i, c := range peers {
		ranks[i] = m.Rank(c)
	}
	return ranks
}

// Groups lists all groups over the given axes, in the order of their lowest rank.
func (m Mesh) Groups(axes ...Axis) [][]int {
	var groups [][]int
	seen := make([]bool, m.Size())
	for r := range m.Size() {
		if seen[r] {
			continue
		}
		g := m.Peers(r, axes...)
		for _, p := range g {
			seen[p] = true
		}
		groups = append(groups, g)
	}
	return groups
}

// String prints the axes with a degree above 1, slowest first: "pp2 x dp4 x tp2".
func (m Mesh) String() string {
	var parts []string
	for _, a := range m.order {
		if m.degree[a] > 1 {
			parts = append(parts, fmt.Sprintf("%v%d", a, m.degree[a]))
		}
	}
	if len(parts) == 0 {
		return "1 rank"
	}
	return strings.Join(parts, " x ")
}

// Place prints where a rank sits, as errors and traces show it: "dp0 pp1 tp1".
// The three main axes are always shown, the others where their degree is above 1.
func (m Mesh) Place(rank int) string {
	c := m.Coord(rank)
	s := fmt.Sprintf("dp%d pp%d tp%d", c[DP], c[PP], c[TP])
	for _, a := range []Axis{Replicate, EP, CP} {
		if m.degree[a] > 1 {
			s += fmt.Sprintf(" %v%d", a, c[a])
		}
	}
	return s
}
