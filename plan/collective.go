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
// (Thakur et al. 2005, §4; NCCL's tuning model). An all-reduce goes round twice, or up and down a tree over the outer link, whose hops grow with the logarithm of the
// nodes, or is summed in the switch where all its ranks are on one that can. Of all the ways that the links offer it is the quickest.
func (c Cluster) Collective(kind comm.CallKind, bytes float64, s span) float64 {
	if s.size <= 1 {
		return 0
	}
	best := math.Inf(1)
	for way := range c.ways() {
		r := c.route(s, way)
		part := float64(s.size-1) / float64(s.size) * bytes / r.pace
		switch kind {
		case comm.KindAllReduce:
			best = min(best, r.base+2*(r.hops+part), r.base+2*(r.tree+bytes/r.pace/treeShare))
			if r.inSwitch > 0 && way == 0 {
				best = min(best, r.base+2*r.first+bytes/r.inSwitch)
			}
		case comm.KindBarrier:
			best = min(best, r.base+min(r.hops, 2*r.tree))
		default:
			best = min(best, r.base+r.hops+part)
		}
	}
	return best
}

// treeShare is the bandwidth of a tree beside a ring's (NCCL's tuning table).
const treeShare = 0.92

// ways is how many protocols all links have: the plain one, and the quick ones.
func (c Cluster) ways() int {
	n := len(c.Links[0].Quick)
	for _, l := range c.Links {
		n = min(n, len(l.Quick))
	}
	return 1 + n
}

// route is a group's way through the links under one protocol: seconds of start and of hops, and bytes/s.
type route struct {
	base, hops, tree, pace float64
	first, inSwitch        float64 // hop and pace inside a switch that sums; 0 where there is none
}

func (c Cluster) route(s span, way int) route {
	out := route{pace: math.Inf(1)}
	inside := 1
	for i, l := range c.Links {
		units := s.per[i] / inside // units of the level below that meet here
		if i == len(c.Links)-1 {
			units = s.size / inside
		}
		if units <= 1 {
			continue
		}
		bandwidth, latency, base := l.Bandwidth, l.Latency, l.Base
		if way > 0 {
			q := l.Quick[way-1]
			bandwidth, latency, base = bandwidth*q.Share, q.Latency, q.Base
		}
		// Of the ring's steps, those that cross this link: between the units below, in each of the units above.
		above := s.size / (inside * units)
		out.hops += float64((units-1)*above) * latency
		if i == 0 { // inside a node a tree is a chain
			out.tree += float64(units-1) * latency
		} else {
			out.tree += math.Ceil(math.Log2(float64(units))) * latency
		}
		if l.InSwitch && units == s.size {
			out.first, out.inSwitch = latency, bandwidth
		}
		out.pace = min(out.pace, float64(inside)*bandwidth)
		out.base = max(out.base, base)
		inside *= units
	}
	return out
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
