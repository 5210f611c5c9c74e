package cpu

import (
	"math"

	"triax/tensor"
)

// mapTask applies one of the simple element-by-element operations.
type mapTask[T float] struct {
	op      mapOp
	y, x, z []T
	s       T
	rows    *rowOps
}

type mapOp uint8

const (
	mapAdd mapOp = iota
	mapScale
	mapGelu
	mapGeluGrad
)

func (d *core[T]) mapped(op mapOp, y, x, z []T, s T, cost int) {
	d.ops.map2 = mapTask[T]{op, y, x, z, s, d.rows}
	d.team.split(len(y), 256, len(y)*cost, &d.ops.map2)
}

func (m *mapTask[T]) run(_, lo, hi int) {
	y := m.y[lo:hi]
	if m.rows != nil {
		m.vectors(lo, hi)
		return
	}
	switch m.op {
	case mapAdd:
		x := m.x[lo:hi]
		for i := range y {
			y[i] += x[i]
		}
	case mapScale:
		for i := range y {
			y[i] *= m.s
		}
	case mapGelu:
		x := m.x[lo:hi]
		for i := range y {
			y[i] = T(gelu(float64(x[i])))
		}
	case mapGeluGrad:
		x, dy := m.x[lo:hi], m.z[lo:hi]
		for i := range y {
			y[i] = T(geluSlope(float64(x[i])) * float64(dy[i]))
		}
	}
}

func (m *mapTask[T]) vectors(lo, hi int) {
	y, n := first(m.y[lo:]), hi-lo
	switch m.op {
	case mapAdd:
		m.rows.add(y, first(m.x[lo:]), n)
	case mapScale:
		m.rows.scale(y, n, float32(m.s))
	case mapGelu:
		m.rows.gelu(y, first(m.x[lo:]), n)
	case mapGeluGrad:
		m.rows.geluGrad(y, first(m.x[lo:]), first(m.z[lo:]), n)
	}
}

func (d *core[T]) Add(y, x *tensor.Tensor) {
	sameLen("Add", y, x)
	d.mapped(mapAdd, tensor.Slice[T](y), tensor.Slice[T](x), nil, 0, 1)
}

func (d *core[T]) Scale(y *tensor.Tensor, s float64) {
	d.mapped(mapScale, tensor.Slice[T](y), nil, nil, T(s), 1)
}

func (d *core[T]) Gelu(y, x *tensor.Tensor) {
	sameLen("Gelu", y, x)
	d.mapped(mapGelu, tensor.Slice[T](y), tensor.Slice[T](x), nil, 0, 16)
}

func (d *core[T]) GeluGrad(dx, x, dy *tensor.Tensor) {
	sameLen("GeluGrad", dx, x, dy)
	d.mapped(mapGeluGrad, tensor.Slice[T](dx), tensor.Slice[T](x), tensor.Slice[T](dy), 0, 16)
}

// The constants of gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks & Gimpel 2016, §2.
const (
	geluRoot = 0.79788456080286535587989211986876
	geluCube = 0.044715
)

func gelu(x float64) float64 {
	return x / 2 * (1 + math.Tanh(geluRoot*(x+geluCube*x*x*x)))
}

// geluSlope is the derivative of gelu.
func geluSlope(x float64) float64 {
	t := math.Tanh(geluRoot * (x + geluCube*x*x*x))
	return (1+t)/2 + x/2*(1-t*t)*geluRoot*(1+3*geluCube*x*x)
}
