package cpu

import (
	"math"

	"triax/tensor"
)

// AttentionMerge weighs both results by their share of the joint sum of exponentials (Liu et al. 2023, §3).
func (d *core[T]) AttentionMerge(out, lse, part, partLSE *tensor.Tensor, at tensor.Attention) {
	rows := at.Samples * at.Seq * at.Heads
	demand(out.Len() == rows*at.HeadDim && part.Len() == out.Len() && lse.Len() == rows && partLSE.Len() == rows,
		"AttentionMerge", out, lse, part, partLSE)
	t := &d.ops.merge
	t.at = at
	t.out, t.lse, t.part, t.partLSE = tensor.Slice[T](out), tensor.Slice[T](lse), tensor.Slice[T](part), tensor.Slice[T](partLSE)
	d.team.split(at.Samples*at.Seq, 1, rows*(at.HeadDim+32), t)
}

type mergeTask[T float] struct {
	at                      tensor.Attention
	out, lse, part, partLSE []T
}

func (t *mergeTask[T]) run(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		sample, s := i/t.at.Seq, i%t.at.Seq
		for head := range t.at.Heads {
			at := (sample*t.at.Heads+head)*t.at.Seq + s
			x, y := float64(t.lse[at]), float64(t.partLSE[at])
			top := math.Max(x, y)
			if math.IsInf(top, -1) {
				continue // no key seen in either
			}
			sum := top + math.Log(math.Exp(x-top)+math.Exp(y-top))
			a, b := math.Exp(x-sum), math.Exp(y-sum)
			o := t.out[(i*t.at.Heads+head)*t.at.HeadDim:][:t.at.HeadDim]
			p := t.part[(i*t.at.Heads+head)*t.at.HeadDim:][:t.at.HeadDim]
			for j := range o {
				o[j] = T(a*float64(o[j]) + b*float64(p[j]))
			}
			t.lse[at] = T(sum)
		}
	}
}
