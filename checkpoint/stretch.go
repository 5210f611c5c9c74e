package checkpoint

import (
	"fmt"
	"math/bits"

	"triax/nn"
)

// Stretch is a part of a parameter in the coordinates of the whole model. A rank holds rows Lo up to Hi of dim Dim; of these, in
// their own order and without padding, the stretch is elements From up to To.
//
//	shape [4 6], dim 1, rows 2 to 5         of the 12 elements held: From 4, To 9
//	. . 0 1 2 .                             . . . . . .
//	. . 3 4 5 .                             . . . # # .
//	. . 6 7 8 .                             . . # # # .
//	. . 9 a b .                             . . . . . .
type Stretch struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	Dim   int    `json:"dim"`
	Lo    int    `json:"lo"`
	Hi    int    `json:"hi"`
	From  int    `json:"from"`
	To    int    `json:"to"`
}

// StretchOf is elements lo up to hi of p's local memory, padding left out.
func StretchOf(p *nn.Param, lo, hi int) Stretch {
	return Stretch{Name: p.Name, Shape: p.Shape, Dim: p.Dim, Lo: p.Lo, Hi: p.Hi, From: held(p, lo), To: held(p, hi)}
}

// held counts the elements before local element i that are not padding.
func held(p *nn.Param, i int) int {
	inner := elements(p.Shape[p.Dim+1:])
	row := p.Local[p.Dim] * inner
	if row == 0 {
		return 0
	}
	have := (p.Hi - p.Lo) * inner
	return i/row*have + min(i%row, have)
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Len is the number of elements.
func (s Stretch) Len() int { return s.To - s.From }

// check refuses what cannot be: hostile or broken indexes.
func (s Stretch) check() error {
	if len(s.Shape) == 0 || len(s.Shape) > 8 || s.Dim < 0 || s.Dim >= len(s.Shape) {
		return fmt.Errorf("%s: dim %d of shape %v", s.Name, s.Dim, s.Shape)
	}
	n := uint64(1)
	for _, d := range s.Shape {
		over, product := bits.Mul64(n, uint64(d))
		if d < 1 || over != 0 || product > 1<<50 {
			return fmt.Errorf("%s: shape %v", s.Name, s.Shape)
		}
		n = product
	}
	have := elements(s.Shape[:s.Dim]) * elements(s.Shape[s.Dim+1:])
	if s.Lo < 0 || s.Hi <= s.Lo || s.Hi > s.Shape[s.Dim] || s.From < 0 || s.To <= s.From || s.To > have*(s.Hi-s.Lo) {
		return fmt.Errorf("%s: elements %d to %d of rows %d to %d of shape %v", s.Name, s.From, s.To, s.Lo, s.Hi, s.Shape)
	}
	return nil
}

// overlap yields the runs that the stretch shares with logical elements first up to first+n: from counts in the stretch, to from first.
func (s Stretch) overlap(first, n int, yield func(from, to, length int)) {
	inner := elements(s.Shape[s.Dim+1:])
	row, have, skip := s.Shape[s.Dim]*inner, (s.Hi-s.Lo)*inner, s.Lo*inner
	for o := max(first/row, s.From/have); o <= min((first+n-1)/row, (s.To-1)/have); o++ {
		lo := max(first, o*row+skip, o*row+skip+s.From-o*have)
		hi := min(first+n, o*row+skip+have, o*row+skip+s.To-o*have)
		if lo < hi {
			yield(lo-o*row-skip+o*have-s.From, lo-first, hi-lo)
		}
	}
}
