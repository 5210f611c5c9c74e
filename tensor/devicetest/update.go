package devicetest

import (
	"fmt"
	"math"

	"triax/tensor"
)

// adamws: Algorithm 2 of Loshchilov & Hutter 2019 line by line, the decay multiplied by the rate.
func adamws(b *bench) {
	for _, n := range lengths {
		w, wv := b.randomSum(1, n)
		m, v := b.putSum(make([]float64, n), n), b.putSum(make([]float64, n), n)
		mv, vv := make([]float64, n), make([]float64, n)
		for step := 1; step <= 4; step++ {
			u := tensor.AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Step: step, Scale: 0.7}
			g, gv := b.randomSum(0.1, n)
			b.dev.AdamW(w, g, m, v, u)
			for i := range gv {
				x := u.Scale * gv[i]
				mv[i] = u.Beta1*mv[i] + (1-u.Beta1)*x
				vv[i] = u.Beta2*vv[i] + (1-u.Beta2)*x*x
				mHat := mv[i] / (1 - math.Pow(u.Beta1, float64(step)))
				vHat := vv[i] / (1 - math.Pow(u.Beta2, float64(step)))
				wv[i] -= u.Rate * (mHat/(math.Sqrt(vHat)+u.Eps) + u.Decay*wv[i])
			}
			what := fmt.Sprintf("adamw %d, step %d: ", n, step)
			b.want(what+"w", w, wv)
			b.close(what+"m", b.read(m), mv, b.tol, 1e-2) // a running mean of numbers of either sign
			b.want(what+"v", v, vv)
		}
		b.free()
	}
}

func sgds(b *bench) {
	for _, n := range lengths {
		for _, momentum := range []float64{0, 0.9} {
			u := tensor.SGD{Rate: 0.1, Momentum: momentum, Decay: 0.01, Scale: 0.5}
			w, wv := b.randomSum(1, n)
			mv := make([]float64, n)
			var m *tensor.Tensor
			if momentum != 0 {
				m = b.putSum(mv, n)
			}
			for range 3 {
				g, gv := b.randomSum(1, n)
				b.dev.SGD(w, g, m, u)
				for i := range gv {
					mv[i] = momentum*mv[i] + u.Scale*gv[i] + u.Decay*wv[i]
					wv[i] -= u.Rate * mv[i]
				}
				b.close(fmt.Sprintf("sgd %d, momentum %v: w", n, momentum), b.read(w), wv, b.tol, 1) // sums may cancel
			}
			if m != nil {
				b.close(fmt.Sprintf("sgd %d: m", n), b.read(m), mv, b.tol, 1)
			}
			b.free()
		}
	}
}

// sumSquares is added in float64 on every device, so its tolerance does not depend on the type; squares
// of float32 values that overflow or vanish in float32 still count.
func sumSquares(b *bench) {
	for _, n := range lengths {
		t, values := b.randomSum(3, n)
		var want float64
		for _, v := range values {
			want += v * v
		}
		got := b.dev.SumSquares(t)
		if math.Abs(got-want) > 1e-12*want {
			b.Errorf("sum of squares of %d: %v, want %v", n, got, want)
		}
		if again := b.dev.SumSquares(t); again != got {
			b.Errorf("sum of squares of %d: %v, then %v", n, got, again)
		}
		b.free()
	}
	big := b.putSum([]float64{1e25, -2e-30, 3e25}, 3)
	if got, want := b.dev.SumSquares(big), 1e51; math.Abs(got-want) > 1e-6*want {
		b.Errorf("sum of large squares: %v, want %v", got, want)
	}
	small := b.putSum([]float64{1e-30, 1e-30}, 2)
	if got, want := b.dev.SumSquares(small), 2e-60; math.Abs(got-want) > 1e-6*want {
		b.Errorf("sum of small squares: %v, want %v", got, want)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		values := make([]float64, 100)
		values[67] = bad
		if got := b.dev.SumSquares(b.putSum(values, 100)); !math.IsNaN(got) && !math.IsInf(got, 0) {
			b.Errorf("sum of squares with a %v: %v", bad, got)
		}
	}
}
