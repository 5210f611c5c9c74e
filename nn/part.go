package nn

import "triax/tensor"

// Run is a stretch of a parameter that is contiguous here and in the whole model.
type Run struct{ Local, Logical, Len int }

// Runs yields the part held here in the order of the local memory. Padding is in no run.
//
//	Dim 0: one run                Dim 1: one run a row
//	| . . . . . . |               | . . ## . |
//	| ########### |               | . . ## . |
func (p *Param) Runs(yield func(Run) bool) {
	outer, inner := tensor.Elements(p.Shape[:p.Dim]...), tensor.Elements(p.Shape[p.Dim+1:]...)
	n := (p.Hi - p.Lo) * inner
	if n == 0 {
		return
	}
	for o := range outer {
		if !yield(Run{Local: o * p.Local[p.Dim] * inner, Logical: (o*p.Shape[p.Dim] + p.Lo) * inner, Len: n}) {
			return
		}
	}
}

// Logical is the index in the whole parameter of element i of the local memory; -1 for padding.
func (p *Param) Logical(i int) int {
	inner := tensor.Elements(p.Shape[p.Dim+1:]...)
	row, col := i/inner, i%inner
	o, d := row/p.Local[p.Dim], row%p.Local[p.Dim]
	if d >= p.Hi-p.Lo {
		return -1
	}
	return (o*p.Shape[p.Dim]+p.Lo+d)*inner + col
}

// Held is the number of logical elements held here: Len without padding.
func (p *Param) Held() int {
	if p.Local[p.Dim] == 0 {
		return 0
	}
	return p.Len() / p.Local[p.Dim] * (p.Hi - p.Lo)
}

// Elements is the number of elements of the whole parameter.
func (p *Param) Elements() int { return tensor.Elements(p.Shape...) }
