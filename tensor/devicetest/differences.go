package devicetest

import (
	"math"

	"triax/tensor"
)

// slopes compares a gradient with central differences of fourth order of f, the reference forward:
// dx_i = d/dx_i of the sum of dy f(x). Their own error is about 1e-10 whatever the slope's size, hence the floor.
func (b *bench) slopes(what string, dx *tensor.Tensor, f func([]float64) []float64, x, dy []float64) {
	b.Helper()
	b.slopesWithin(what, dx, f, x, dy, b.tol, 0.1)
}

// slopesWithin is slopes to a tolerance and floor of the caller's.
func (b *bench) slopesWithin(what string, dx *tensor.Tensor, f func([]float64) []float64, x, dy []float64, tol, floor float64) {
	b.Helper()
	const h = 1e-3
	at := append([]float64(nil), x...)
	value := func(i int, v float64) float64 {
		at[i] = v
		var sum float64
		for j, y := range f(at) {
			sum += y * dy[j]
		}
		at[i] = x[i]
		return sum
	}
	want := make([]float64, len(x))
	for i, v := range x {
		near := value(i, v+h) - value(i, v-h)
		far := value(i, v+2*h) - value(i, v-2*h)
		want[i] = (8*near - far) / (12 * h)
	}
	b.close(what+", against central differences", b.read(dx), want, math.Max(tol, 1e-8), floor)
}
