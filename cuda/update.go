package cuda

import (
	"math"

	"triax/tensor"
)

// AdamW folds the bias corrections into the rate and eps (Kingma & Ba 2015, end of §2).
func (d *Device) AdamW(w, g, m, v *tensor.Tensor, u tensor.AdamW) {
	n := sameLen("AdamW", w, g, m, v)
	c1 := 1 - math.Pow(u.Beta1, float64(u.Step))
	c2 := math.Sqrt(1 - math.Pow(u.Beta2, float64(u.Step)))
	d.flat("adamw", w.DType, n, w, g, m, v, n, u.Scale, u.Beta1, 1-u.Beta1, u.Beta2, 1-u.Beta2, u.Rate*c2/c1, u.Eps*c2, 1-u.Rate*u.Decay)
}

// SGD keeps a momentum where there is one.
func (d *Device) SGD(w, g, m *tensor.Tensor, u tensor.SGD) {
	n := sameLen("SGD", w, g)
	demand(m != nil || u.Momentum == 0, "SGD: momentum without m", w, g)
	demand(m == nil || m.Len() == n, "SGD", w, g)
	d.flat("sgd", w.DType, n, w, g, m, n, u.Rate, u.Momentum, u.Decay, u.Scale)
}

// squaresEach is how many elements are added up by themselves, as in update.cu.
const squaresEach = 1 << 14

// SumSquares adds in float64, in two stages.
func (d *Device) SumSquares(t *tensor.Tensor) float64 {
	return d.total(parts(t.Len(), squaresEach), func(part *tensor.Tensor) {
		d.rowBlocks("squares_part", t.DType, part.Len(), part, t, t.Len())
	})
}
