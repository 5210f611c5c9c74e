package plan

import (
	"math"

	"triax/comm"
	"triax/mesh"
)

// span is how a group lies on a cluster's links: its ranks are stride apart, and per[i] of them share a unit of link i.
type span struct {
	size int
	per  []int // ranks of the group inside one unit of each link, the last being all
}

// spanOf lays the groups of some axes out: with mesh order the ranks of one axis are consecutive at the stride of all faster axes.
func (c Cluster) spanOf(m mesh.Mesh, axes ...mesh.Axis) span {
	in := map[mesh.Axis]bool{}
	size := 1
	for _, a := range axes {
		in[a] = true
		size *= m.Degree(a)
	}
	out := span{size: size}
	for _, l := range c.Links {
		if l.Span == 0 {
			out.per = append(out.per, size)
			continue
		}
		// Ranks of the group of rank 0 that are below the unit's border.
		inside, stride := 1, 1
		order := m.Order()
		for i := len(order) - 1; i >= 0 && stride < l.Span; i-- {
			d := m.Degree(order[i])
			if in[order[i]] {
				inside *= min(d, max(1, l.Span/stride))
			}
			stride *= d
		}
		out.per = append(out.per, min(inside, size))
	}
	return out
}

// Collective is the time of one call of bytes over a group: a ring through all its ranks. Every byte passes every link, so the slowest one sets
// the pace, where the ranks inside a unit use their links to the outside together; each of the n-1 steps pays the hop that it crosses
// (Thakur et al. 2005, §4; NCCL's tuning model of a ring). An all-reduce goes round twice.
func (c Cluster) Collective(kind comm.CallKind, bytes float64, s span) float64 {
	if s.size <= 1 {
		return 0
	}
	base, hops, pace, inside := 0.0, 0.0, math.Inf(1), 1
	for i, l := range c.Links {
		units := s.per[i] / inside // units of the level below that meet here
		if i == len(c.Links)-1 {
			units = s.size / inside
		}
		if units <= 1 {
			continue
		}
		// Of the ring's steps, those that cross this link: between the units below, in each of the units above.
		above := s.size / (inside * units)
		hops += float64((units-1)*above) * l.Latency
		pace = min(pace, float64(inside)*l.Bandwidth)
		base = max(base, l.Base)
		inside *= units
	}
	part := float64(s.size-1) / float64(s.size) * bytes / pace
	switch kind {
	case comm.KindAllReduce:
		return base + 2*(hops+part)
	case comm.KindBarrier:
		return base + hops
	}
	return base + hops + part
}

// Message is the time between two neighbours along an axis: over the outermost link that any of them crosses.
func (c Cluster) Message(bytes float64, m mesh.Mesh, a mesh.Axis) (occupancy, latency float64) {
	stride := 1
	order := m.Order()
	for i := len(order) - 1; i >= 0 && order[i] != a; i-- {
		stride *= m.Degree(order[i])
	}
	reach := stride * m.Degree(a)
	for i, l := range c.Links {
		if l.Span == 0 || reach <= l.Span || i == len(c.Links)-1 {
			return bytes / l.Bandwidth, l.Latency
		}
	}
	return 0, 0
}
