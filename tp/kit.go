package tp

import (
	"fmt"

	"triax/comm"
	"triax/mesh"
	"triax/nn"
)

// Kit makes this rank's slice of every layer. It implements nn.Kit.
type Kit struct {
	Group *comm.Group
	// Sequence keeps only T/t token rows on each rank between the cut layers: all-reduce becomes all-gather
	// before and reduce-scatter after (Korthikanti et al. 2022, §4.2.2).
	Sequence bool
	// Stream, when set, runs the reduction of a column-cut matrix's input gradient beside its weight gradient, which does not
	// wait for it (Narayanan et al. 2021, §4, as Megatron-LM does it).
	Stream *comm.Stream
}

var _ nn.Kit = Kit{}

func (k Kit) degree() int { return k.Group.Size() }

// Rows is the rank's token rows between layers: all T, or its T/t consecutive ones.
func (k Kit) Rows(T int) (lo, hi int) {
	if !k.Sequence {
		return 0, T
	}
	if T%k.degree() != 0 {
		panic(fmt.Sprintf("tp: %d token rows over %d ranks", T, k.degree()))
	}
	n := T / k.degree()
	return k.Group.Place() * n, (k.Group.Place() + 1) * n
}

// Core works alone: heads are cut, and no head needs another.
func (k Kit) Core() nn.Core { return nn.OneDevice{} }

// Heads is this rank's share of n heads. With fewer heads than ranks (key/value heads under grouped-query attention)
// runs of t/n ranks hold the same head.
func (k Kit) Heads(n int) (count, first int) {
	lo, hi, _ := k.share(n)
	return hi - lo, lo
}

// share cuts n units over the group: units lo up to hi are here, and so on copies consecutive ranks.
func (k Kit) share(n int) (lo, hi, copies int) {
	t, r := k.degree(), k.Group.Place()
	switch {
	case n%t == 0:
		return r * n / t, (r + 1) * n / t, 1
	case t%n == 0:
		c := t / n
		return r / c, r/c + 1, c
	}
	panic(fmt.Sprintf("tp: %d units over %d ranks: one must divide the other", n, t))
}

// Replicated marks a parameter that all ranks hold whole. Where the token rows are cut, each rank's
// gradient covers its own rows only and must be summed.
func (k Kit) Replicated(p *nn.Param) *nn.Param {
	p.Dim, p.Lo, p.Hi = 0, 0, p.Shape[0]
	p.Local = append([]int(nil), p.Shape...)
	p.Counted = k.Group.Place() == 0
	if k.degree() > 1 {
		p.Same = []nn.Span{{Axis: mesh.TP}}
		if k.Sequence {
			p.Sum = p.Same
		}
	}
	return p
}

// Partial marks a parameter that all ranks hold whole, of whose gradient each has a partial sum, however token rows are cut.
func (k Kit) Partial(p *nn.Param) *nn.Param {
	p = k.Replicated(p)
	p.Sum = p.Same
	return p
}

// Table is an embedding or output matrix [V D] cut by rows: ceil(V/t) a rank, the last ones padded.
func (k Kit) Table(name string, vocab, width int, init nn.Init) *nn.Param {
	t, r := k.degree(), k.Group.Place()
	per := (vocab + t - 1) / t
	p := &nn.Param{
		Name: name, Shape: []int{vocab, width}, Init: init, Decay: true,
		Dim: 0, Lo: min(vocab, r*per), Hi: min(vocab, (r+1)*per), Local: []int{per, width},
		Counted: true,
	}
	if t > 1 {
		p.Cut = []mesh.Axis{mesh.TP}
	}
	return p
}

// cut is the parameter of a matrix or bias whose dim is cut in units over the group.
func (k Kit) cut(name string, shape []int, dim, unit int, decay bool, init nn.Init) *nn.Param {
	lo, hi, copies := k.share(shape[dim] / unit)
	local := append([]int(nil), shape...)
	local[dim] = (hi - lo) * unit
	p := &nn.Param{
		Name: name, Shape: shape, Init: init, Decay: decay,
		Dim: dim, Lo: lo * unit, Hi: hi * unit, Local: local,
		Counted: k.Group.Place()%copies == 0,
	}
	if k.degree() > 1 {
		p.Cut = []mesh.Axis{mesh.TP}
	}
	if copies > 1 {
		p.Sum = []nn.Span{{Axis: mesh.TP, Size: copies}}
		p.Same = p.Sum
	}
	return p
}
