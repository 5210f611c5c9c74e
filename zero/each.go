package zero

import (
	"triax/nn"
	"triax/tensor"
)

// Piece is a stretch of a parameter that this rank owns: it has the optimizer state for it and makes its updates.
type Piece struct {
	Param  *nn.Param
	Lo, Hi int            // elements of the parameter's local memory, padding included
	Weight *tensor.Tensor // [Hi-Lo], views of the optimizer's memory; of the master copy where there is one
	State  []*tensor.Tensor
}

// Each yields every piece that this rank owns. At stage 0 these are its whole parameters; at the others the
// pieces of the ranks along the shard axis add up to them. Valid between steps.
func (o *Optimizer) Each(yield func(Piece) bool) {
	for _, b := range o.buckets {
		base, hi := o.bounds(b)
		for _, p := range b.pieces(base, hi) {
			if !yield(b.piece(p, base)) {
				return
			}
		}
	}
}

// Owned yields what this rank writes into a checkpoint: of all ranks together every element of the whole model once. Of the ranks that hold
// copies along other axes it is the one whose record says Counted; along the data axes each has its part, also where all hold everything.
func (o *Optimizer) Owned(yield func(Piece) bool) {
	if o.replicas.Place() != 0 {
		return
	}
	for _, b := range o.buckets {
		g := o.shards(b)
		s := b.padded / g.Size()
		lo := g.Place() * s
		base, _ := o.bounds(b)
		for _, p := range b.pieces(lo, lo+s) {
			if p.param.Counted && !yield(b.piece(p, base)) {
				return
			}
		}
	}
}

// piece is what yields of a bucket are, whose memory begins at element base.
func (b *bucket) piece(p piece, base int) Piece {
	from, to := p.at-base, p.at-base+p.hi-p.lo
	out := Piece{Param: p.param, Lo: p.lo, Hi: p.hi, Weight: b.mem.weights().Flat(from, to)}
	for _, s := range b.mem.state {
		out.State = append(out.State, s.Flat(from, to))
	}
	return out
}

// StateNames names the state tensors of a Piece.
func (o *Optimizer) StateNames() []string { return o.rule.StateNames() }
