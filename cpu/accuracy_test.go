package cpu

import (
	"math"
	"testing"
)

// ulps is the distance of got from the exact value in units of the last place of float32 there.
func ulps(got float32, exact float64) float64 {
	near := float32(math.Abs(exact))
	unit := float64(math.Nextafter32(near, math.MaxFloat32)) - float64(near)
	return math.Abs(float64(got)-exact) / unit
}

// worst is the largest error of f over a dense sweep of lo up to hi, and where it is.
func worst(f func(dst, src []float32), exact func(float64) float64, lo, hi float64) (most float64, at float32) {
	const n = 1 << 20
	src, dst := make([]float32, n), make([]float32, n)
	for i := range src {
		src[i] = float32(lo + (hi-lo)*float64(i)/n)
	}
	f(dst, src)
	for i, x := range src {
		if e := ulps(dst[i], exact(float64(x))); e > most {
			most, at = e, x
		}
	}
	return most, at
}

// TestAccuracy measures what the doc comment of rowOps states.
func TestAccuracy(t *testing.T) {
	silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	exactGelu := func(x float64) float64 { // without the cancellation of 1 + tanh far out
		return x / (1 + math.Exp(-2*geluRoot*(x+geluCube*x*x*x)))
	}
	for _, isa := range Supported() {
		k := rowKernels[float32](isa)
		if k == nil {
			continue
		}
		ones := make([]float32, 1<<20)
		for i := range ones {
			ones[i] = 1
		}
		for _, c := range []struct {
			name   string
			f      func(dst, src []float32)
			exact  func(float64) float64
			lo, hi float64
			bound  float64
		}{
			{"exp", func(d, s []float32) { k.exp(&d[0], &s[0], len(s), 1, 0, 1) }, math.Exp, -87.3, 88.3, 1.5},
			{"exp near 0", func(d, s []float32) { k.exp(&d[0], &s[0], len(s), 1, 0, 1) }, math.Exp, -1, 1, 1.5},
			{"gelu", func(d, s []float32) { k.gelu(&d[0], &s[0], len(s)) }, exactGelu, -3, 10, 12},
			{"silu", func(d, s []float32) { k.swiglu(&d[0], &s[0], &ones[0], len(s)) }, silu, -20, 20, 4},
		} {
			most, at := worst(c.f, c.exact, c.lo, c.hi)
			t.Logf("%s %s: %.2f ulp at %v", isa, c.name, most, at)
			if most > c.bound {
				t.Errorf("%s %s: %.2f ulp at %v, more than %v", isa, c.name, most, at, c.bound)
			}
		}
	}
}

// TestExpEnds: beyond the range of float32 e^x is 0 or very large, and NaN stays.
func TestExpEnds(t *testing.T) {
	for _, isa := range Supported() {
		k := rowKernels[float32](isa)
		if k == nil {
			continue
		}
		x := []float32{float32(math.Inf(-1)), -1e30, -100, 0, 1e30, float32(math.Inf(1)), float32(math.NaN())}
		y := make([]float32, len(x))
		k.exp(&y[0], &x[0], len(x), 1, 0, 1)
		if y[0] != 0 || y[1] != 0 || y[2] != 0 || y[3] != 1 || !(y[4] > 1e38) || !(y[5] > 1e38) || y[6] == y[6] {
			t.Errorf("%s: e^%v is %v", isa, x, y)
		}
	}
}
