package devicetest

import (
	"fmt"
	"math"
)

// lengths are odd, around vector lengths, and long enough to be shared among threads.
var lengths = []int{1, 3, 7, 15, 16, 17, 65, 130, 1001, 40003}

func sums(b *bench) {
	for _, n := range lengths {
		y, yv := b.random(1, n)
		x, xv := b.random(1, n)
		b.dev.Add(y, x)
		for i := range yv {
			yv[i] += xv[i]
		}
		b.want(fmt.Sprintf("add %d", n), y, yv)
		b.dev.Scale(y, -0.3)
		yv = each(yv, func(v float64) float64 { return -0.3 * v })
		b.want(fmt.Sprintf("scale %d", n), y, yv)
		b.free()
	}
}

func each(x []float64, f func(float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

// tables are numbers of rows and columns.
var tables = [][2]int{{1, 1}, {1, 17}, {3, 7}, {7, 65}, {17, 130}, {65, 3}, {300, 301}, {2, 1030}}

func biases(b *bench) {
	for _, s := range tables {
		rows, cols := s[0], s[1]
		y, yv := b.random(1, rows, cols)
		bias, biasV := b.random(1, cols)
		sum, sumV := b.randomSum(1, cols)
		b.dev.BiasGrad(sum, y)
		for i, v := range yv {
			sumV[i%cols] += v
			yv[i] += biasV[i%cols]
		}
		b.want(fmt.Sprintf("bias gradient %v", s), sum, sumV)
		b.dev.AddBias(y, bias)
		b.want(fmt.Sprintf("add bias %v", s), y, yv)
		b.free()
	}
}

func gelu(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func geluSlope(x float64) float64 {
	u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
	du := math.Sqrt(2/math.Pi) * (1 + 3*0.044715*x*x)
	return 0.5*(1+math.Tanh(u)) + 0.5*x*du/(math.Cosh(u)*math.Cosh(u))
}

// cancels is the size below which the slope of an activation is a difference of larger terms, exact to rounding of those
// alone: both activations have a minimum, and are flat far out.
const cancels = 0.1

func gelus(b *bench) {
	for _, n := range lengths {
		x, xv := b.random(3, n)
		if n == 7 {
			xv = []float64{0, -40, 40, -1e4, 1e4, 1e-20, -6}
			x = b.put(xv, n)
			xv = b.read(x)
		}
		y := b.blank(n)
		b.dev.Gelu(y, x)
		b.close(fmt.Sprintf("gelu %d", n), b.read(y), each(xv, gelu), b.tol, 1e-3)
		dy, dyv := b.random(1, n)
		want := each(xv, geluSlope)
		for i := range want {
			want[i] *= dyv[i]
		}
		dx := b.blank(n)
		b.dev.GeluGrad(dx, x, dy)
		b.close(fmt.Sprintf("gelu gradient %d", n), b.read(dx), want, b.tol, cancels)
		if n <= 130 && n != 7 {
			b.slopes("gelu", dx, func(x []float64) []float64 { return each(x, gelu) }, xv, dyv)
		}
		b.dev.GeluGrad(dy, x, dy)
		b.equal("gelu gradient in place", b.read(dy), b.read(dx))
		b.free()
	}
}

func swiglu(gate, up []float64) []float64 {
	y := make([]float64, len(gate))
	for i, g := range gate {
		y[i] = up[i] * g / (1 + math.Exp(-g))
	}
	return y
}

func swiglus(b *bench) {
	for _, n := range lengths {
		gate, gv := b.random(3, n)
		if n == 7 {
			gate = b.put([]float64{0, -200, 200, -1e4, 1e4, -88.5, 88.5}, n)
			gv = b.read(gate)
		}
		up, uv := b.random(1, n)
		dy, dyv := b.random(1, n)
		y, dgate, dup := b.blank(n), b.blank(n), b.blank(n)
		b.dev.SwiGLU(y, gate, up)
		b.want(fmt.Sprintf("swiglu %d", n), y, swiglu(gv, uv))
		b.dev.SwiGLUGrad(dgate, dup, gate, up, dy)
		wantGate, wantUp := make([]float64, n), make([]float64, n)
		for i, g := range gv {
			s := 1 / (1 + math.Exp(-g))
			wantUp[i] = dyv[i] * g * s
			wantGate[i] = dyv[i] * uv[i] * (s + g*s*(1-s))
		}
		b.close(fmt.Sprintf("swiglu gate gradient %d", n), b.read(dgate), wantGate, b.tol, cancels)
		b.want(fmt.Sprintf("swiglu up gradient %d", n), dup, wantUp)
		if n <= 65 && n != 7 {
			b.slopes("swiglu gate", dgate, func(x []float64) []float64 { return swiglu(x, uv) }, gv, dyv)
			b.slopes("swiglu up", dup, func(x []float64) []float64 { return swiglu(gv, x) }, uv, dyv)
		}
		b.free()
	}
}
