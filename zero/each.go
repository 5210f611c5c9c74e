package zero

import (
	"triax/nn"
	"triax/tensor"
)

// Piece is a stretch of a parameter that this rank owns: it has the optimizer state for it and makes its updates.
type Piece struct {
	Param  *nn.Param
	Lo, Hi int            // elements of the parameter's local memory, padding included
	Weight *tensor.Tensor // [Hi-Lo], views of the optimizer's memory
	State  []*tensor.Tensor
}

// Each yields every piece that this rank owns. At stage 0 these are its whole parameters; at the others the
// pieces of the ranks along the shard axis add up to them. Valid between steps.
func (o *Optimizer) Each(yield func(Piece) bool) {
	for _, b := range o.buckets {
		base, hi := o.bounds(b)
		for _, p := range b.pieces(base, hi) {
			from, to := p.at-base, p.at-base+p.hi-p.lo
			out := Piece{Param: p.param, Lo: p.lo, Hi: p.hi, Weight: b.mem.shard.Flat(from, to)}
			for _, s := range b.mem.state {
				out.State = append(out.State, s.Flat(from, to))
			}
			if !yield(out) {
				return
			}
		}
	}
}

// StateNames names the state tensors of a Piece.
func (o *Optimizer) StateNames() []string { return o.rule.StateNames() }
