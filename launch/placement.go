package launch

import (
	"fmt"
	"slices"
	"strings"

	"triax/mesh"
)

// Placement is a mesh on hosts: Hosts[r] has rank r.
type Placement struct {
	Mesh  mesh.Mesh
	Hosts []string
}

// Even is a placement of so many ranks a host, one host after another, as launchers do it.
func Even(m mesh.Mesh, perHost int) Placement {
	hosts := make([]string, m.Size())
	for r := range hosts {
		hosts[r] = fmt.Sprintf("host %d", r/perHost)
	}
	return Placement{m, hosts}
}

// names lists the hosts in the order of their lowest rank.
func (p Placement) names() (list []string) {
	for _, h := range p.Hosts {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

func (p Placement) on(host string) (ranks []int) {
	for r, h := range p.Hosts {
		if h == host {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Spread is on how many hosts the groups of an axis are, at most.
func (p Placement) Spread(a mesh.Axis) int {
	most := 1
	for _, group := range p.Mesh.Groups(a) {
		seen := map[string]bool{}
		for _, r := range group {
			seen[p.Hosts[r]] = true
		}
		most = max(most, len(seen))
	}
	return most
}

// Warnings name the axes whose ranks communicate inside every layer and are spread over hosts, though a host has room for them.
func (p Placement) Warnings() (all []string) {
	room := p.Mesh.Size()
	for _, h := range p.names() {
		room = min(room, len(p.on(h)))
	}
	for _, a := range []mesh.Axis{mesh.TP, mesh.CP, mesh.EP} {
		if d := p.Mesh.Degree(a); p.Spread(a) > 1 && d <= room {
			all = append(all, fmt.Sprintf("%v crosses hosts, though %d of its ranks fit in one: write it last in mesh.axes, and let degrees divide the %d ranks of a host", a, d, room))
		}
	}
	return all
}

// String is a line a host, a line an axis, and the warnings.
func (p Placement) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %d ranks on %d hosts\n", p.Mesh, p.Mesh.Size(), len(p.names()))
	for _, h := range p.names() {
		fmt.Fprintf(&b, "  %-12s", h)
		for _, r := range p.on(h) {
			fmt.Fprintf(&b, "  %d (%s)", r, p.Mesh.Place(r))
		}
		fmt.Fprintln(&b)
	}
	for _, a := range p.Mesh.Order() {
		if d := p.Mesh.Degree(a); d > 1 {
			where := "inside a host"
			if n := p.Spread(a); n > 1 {
				where = fmt.Sprintf("across %d hosts", n)
			}
			fmt.Fprintf(&b, "  %-12v of %d: %s\n", a, d, where)
		}
	}
	for _, w := range p.Warnings() {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
