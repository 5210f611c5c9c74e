package zero

import (
	"slices"

	"triax/comm"
	"triax/nn"
)

// Line is one kind of call of a step: how often, and how many elements in all. It stands in the vocabulary of the ledger.
type Line struct {
	Axis     string
	Kind     comm.CallKind
	Group    int // ranks that take part
	Calls    int64
	Elements int64 // summed over the calls, as the ledger counts bytes
}

// Sizes are the sizes of an Optimizer's groups.
type Sizes struct{ Shards, Replicas, Data, ExpertShards, ExpertData int }

// Pass is what a schedule's op does to the layers of a virtual stage.
type Pass uint8

const (
	Forward Pass = iota
	Input
	Weight
	Both
)

// Layout is how parameters are laid out in buckets, without any memory: what New would make.
type Layout struct {
	cfg     Config
	sizes   Sizes
	units   []Unit
	buckets []*bucket
	of      [][]*bucket
}

// NewLayout forms the buckets.
func NewLayout(cfg Config, units []Unit, sizes Sizes) *Layout {
	l := &Layout{cfg: cfg, sizes: sizes, units: units}
	l.buckets, l.of = partition(units, cfg, l.shards)
	return l
}

func (l *Layout) shards(expert bool) int {
	if expert {
		return l.sizes.ExpertShards
	}
	return l.sizes.Shards
}

// Elements is what a rank holds lastingly, in elements: weights, gradients, and each of the optimizer's states.
func (l *Layout) Elements() (weights, gradients, state int64) {
	for _, b := range l.buckets {
		whole, part := int64(b.padded), int64(b.padded/l.shards(b.expert))
		w, g, s := whole, whole, part
		switch l.cfg.Stage {
		case 0:
			s = whole
		case 2:
			g = part
		case 3:
			w, g = part, part
		}
		if b.frozen {
			g, s = 0, 0
		}
		weights, gradients, state = weights+w, gradients+g, state+s
	}
	return weights, gradients, state
}

// Largest is the elements of the largest bucket: what gathering and reducing hold beside.
func (l *Layout) Largest() int64 {
	most := 0
	for _, b := range l.buckets {
		most = max(most, b.padded)
	}
	return int64(most)
}

// Open is the elements of gradients beside the lasting ones at stage 2: those of the unit whose backward runs, and of those on their way.
func (l *Layout) Open() int64 {
	open := max(widest(l.of), l.Largest())
	if l.cfg.Overlap {
		return open + inFlight(l.buckets, l.of)
	}
	return open + l.Largest()
}

// Traffic is the calls of one step of one data rank. walk yields the passes of the rank's line in order.
func (l *Layout) Traffic(walk func(do func(Pass, int))) []Line {
	var gathers, scatters map[*bucket]int64
	if l.cfg.Stage >= 2 {
		gathers, scatters = l.count(walk)
	}
	sum := map[[2]string]*Line{}
	var order []*Line
	add := func(axis string, kind comm.CallKind, group int, calls, elements int64) {
		if group == 1 || calls == 0 {
			return
		}
		key := [2]string{axis, string(kind)}
		line := sum[key]
		if line == nil {
			line = &Line{Axis: axis, Kind: kind, Group: group}
			sum[key] = line
			order = append(order, line)
		}
		line.Calls += calls
		line.Elements += calls * elements
	}
	for _, b := range l.buckets {
		g := l.shards(b.expert)
		dp, data, all := "dp", "data", l.sizes.Data
		if b.expert {
			dp, data, all = "dp_expert", "data_expert", l.sizes.ExpertData
		}
		n := int64(b.padded)
		if b.frozen { // never reduced, and the same after an update
			if l.cfg.Stage == 3 {
				add(dp, comm.KindAllGather, g, gathers[b], n)
			}
			continue
		}
		switch l.cfg.Stage {
		case 0:
			add(data, comm.KindAllReduce, all, 1, n)
			continue
		case 1:
			add(dp, comm.KindReduceScatter, g, 1, n)
		default:
			add(dp, comm.KindReduceScatter, g, scatters[b], n)
		}
		if l.cfg.Stage == 3 {
			add(dp, comm.KindAllGather, g, gathers[b], n)
		} else {
			add(dp, comm.KindAllGather, g, 1, n)
		}
		add("dp_replicate", comm.KindAllReduce, l.sizes.Replicas, 1, n/int64(g))
	}
	out := make([]Line, len(order))
	for i, line := range order {
		out[i] = *line
	}
	return out
}

// count is how often each bucket is gathered and reduce-scattered. Without KeepAfterForward every pass gathers anew, and the order of the
// passes does not matter.
func (l *Layout) count(walk func(do func(Pass, int))) (gathers, scatters map[*bucket]int64) {
	if l.cfg.KeepAfterForward {
		return l.follow(walk)
	}
	var passes [][4]int64 // by virtual stage
	walk(func(p Pass, stage int) {
		for stage >= len(passes) {
			passes = append(passes, [4]int64{})
		}
		passes[stage][p]++
	})
	gathers, scatters = map[*bucket]int64{}, map[*bucket]int64{}
	for i, u := range l.units {
		if u.Stage < len(passes) {
			n := passes[u.Stage]
			for _, b := range l.of[i] {
				gathers[b] += n[Forward] + n[Input] + n[Both]
			}
		}
	}
	for _, b := range l.buckets {
		for stage := range b.uses {
			if stage < len(passes) && !b.frozen {
				scatters[b] += passes[stage][Weight] + passes[stage][Both]
			}
		}
	}
	return gathers, scatters
}

// follow walks the passes as Gather, Free, OpenGrad and CloseGrad see them.
func (l *Layout) follow(walk func(do func(Pass, int))) (gathers, scatters map[*bucket]int64) {
	gathers, scatters = map[*bucket]int64{}, map[*bucket]int64{}
	users, left := map[*bucket]int{}, map[*bucket]int{}
	gather := func(u int) {
		for _, b := range l.of[u] {
			if users[b]++; users[b] == 1 {
				gathers[b]++
			}
		}
	}
	free := func(u, times int) {
		for _, b := range l.of[u] {
			users[b] -= times
		}
	}
	scatter := func(u int) {
		for _, b := range l.of[u] {
			if left[b] == 0 {
				left[b] = b.uses[l.units[u].Stage]
			}
			if left[b]--; left[b] == 0 && !b.frozen {
				scatters[b]++
			}
		}
	}
	keep := 0
	if l.cfg.KeepAfterForward {
		keep = 1
	}
	walk(func(p Pass, stage int) {
		for i := range l.units {
			u := i
			if p != Forward {
				u = len(l.units) - 1 - i
			}
			if l.units[u].Stage != stage {
				continue
			}
			switch p {
			case Forward:
				gather(u)
				free(u, 1-keep)
			case Input, Both:
				gather(u)
				free(u, 1+keep)
			}
			if p == Weight || p == Both {
				scatter(u)
			}
		}
	})
	return gathers, scatters
}

// SpanTraffic is the packed sums over other axes: for every span, and for the tied pair, calls and elements added up over the ranks that
// share out the buckets.
func (l *Layout) SpanTraffic() (spans map[nn.Span]Line, tied Line) {
	spans = map[nn.Span]Line{}
	parts := l.sizes.Shards
	if l.cfg.Stage == 0 {
		parts = 1
	}
	var owing []*bucket
	for _, b := range learning(l.buckets) {
		if b.tied || slices.ContainsFunc(b.params, func(p *nn.Param) bool { return p.Tied || len(p.Sum) > 0 }) {
			owing = append(owing, b)
		}
	}
	if len(owing) == 0 {
		return spans, tied
	}
	for place := range parts {
		mine := map[nn.Span]int64{}
		var tiedHere int64
		for _, b := range owing {
			lo, hi := 0, b.padded
			if l.cfg.Stage > 0 {
				s := b.padded / l.shards(b.expert)
				at := place % l.shards(b.expert)
				lo, hi = at*s, (at+1)*s
			}
			for _, p := range b.pieces(lo, hi) {
				for _, s := range p.param.Sum {
					mine[s] += int64(p.hi - p.lo)
				}
				if p.param.Tied {
					tiedHere += int64(p.hi - p.lo)
				}
			}
		}
		for s, n := range mine {
			line := spans[s]
			line.Calls++
			line.Elements += n
			spans[s] = line
		}
		if tiedHere > 0 {
			tied.Calls++
			tied.Elements += tiedHere
		}
	}
	if l.cfg.Stage == 0 { // every data rank sums everything
		n := int64(l.sizes.Shards)
		for s, line := range spans {
			spans[s] = Line{Calls: line.Calls * n, Elements: line.Elements * n}
		}
		tied.Calls, tied.Elements = tied.Calls*n, tied.Elements*n
	}
	return spans, tied
}
