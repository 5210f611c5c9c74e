package devicetest

import (
	"fmt"
	"math"
)

// normalised is (x - mean) rstd row by row; with centre false, x rstd over the root mean square.
func normalised(x []float64, cols int, eps float64, centre bool) (n, mean, rstd []float64) {
	n = make([]float64, len(x))
	for lo := 0; lo < len(x); lo += cols {
		row := x[lo : lo+cols]
		var m, v float64
		for _, e := range row {
			m += e / float64(cols)
		}
		if !centre {
			m = 0
		}
		for _, e := range row {
			v += (e - m) * (e - m) / float64(cols)
		}
		r := 1 / math.Sqrt(v+eps)
		for j, e := range row {
			n[lo+j] = (e - m) * r
		}
		mean, rstd = append(mean, m), append(rstd, r)
	}
	return n, mean, rstd
}

func affine(n, w, bias []float64) []float64 {
	y := make([]float64, len(n))
	for i, v := range n {
		y[i] = v * w[i%len(w)]
		if bias != nil {
			y[i] += bias[i%len(w)]
		}
	}
	return y
}

// normGrads are dx, dw and db, from the whole Jacobian of a row:
// dn_j/dx_i = rstd (δ_ij - 1/F - n_i n_j / F), without the 1/F for RMSNorm.
func normGrads(n, rstd, w, dy []float64, centre bool) (dx, dw, db []float64) {
	f := len(w)
	dx, dw, db = make([]float64, len(n)), make([]float64, f), make([]float64, f)
	for i, v := range n {
		dw[i%f] += dy[i] * v
		db[i%f] += dy[i]
		row := i / f * f
		for j := row; j < row+f; j++ {
			slope := -v * n[j] / float64(f)
			if centre {
				slope -= 1 / float64(f)
			}
			if i == j {
				slope++
			}
			dx[i] += rstd[i/f] * slope * w[j-row] * dy[j]
		}
	}
	return dx, dw, db
}

func plus(x, y []float64) []float64 {
	z := make([]float64, len(x))
	for i := range x {
		z[i] = x[i] + y[i]
	}
	return z
}

func layerNorms(b *bench) {
	for _, s := range tables {
		rows, cols := s[0], s[1]
		const eps = 1e-5
		x, xv := b.random(2, rows, cols)
		w, wv := b.random(1, cols)
		bias, biasV := b.random(1, cols)
		dy, dyv := b.random(1, rows, cols)
		y, mean, rstd, dx := b.blank(rows, cols), b.blankSum(rows), b.blankSum(rows), b.blank(rows, cols)
		what := fmt.Sprintf("layernorm %v ", s)
		n, meanV, rstdV := normalised(xv, cols, eps, true)
		tol := b.tol * conditioned(xv, rstdV)
		b.dev.LayerNorm(y, mean, rstd, x, w, bias, eps)
		b.near(what+"y", b.read(y), affine(n, wv, biasV), tol)
		b.close(what+"mean", b.read(mean), meanV, b.tol, 0.1)
		b.want(what+"rstd", rstd, rstdV)
		dxv, dwv, dbv := normGrads(n, rstdV, wv, dyv, true)
		b.dev.LayerNormInput(dx, dy, x, w, mean, rstd)
		if cols > 1 { // one column: y does not depend on x at all, dx is rounding times rstd
			b.near(what+"dx", b.read(dx), dxv, tol)
		}
		dw, dw0 := b.randomSum(1, cols)
		db, db0 := b.randomSum(1, cols)
		b.dev.LayerNormWeight(dw, db, dy, x, mean, rstd)
		b.near(what+"dw", b.read(dw), plus(dw0, dwv), tol)
		b.want(what+"db", db, plus(db0, dbv))
		if len(xv) <= 65 && cols > 1 {
			b.slopes(what+"dx", dx, func(x []float64) []float64 {
				n, _, _ := normalised(x, cols, eps, true)
				return affine(n, wv, biasV)
			}, xv, dyv)
		}
		b.free()
	}
	b.offsetRows()
}

// conditioned is what the rounding of the mean, a share of the row's elements, grows by when the row is divided by its deviation: at least 1,
// for rows of few elements that happen to lie close together far more. 16 of it are in the tolerance already.
func conditioned(x, rstd []float64) float64 {
	worst, cols := 16.0, len(x)/len(rstd)
	for i, v := range x {
		worst = max(worst, math.Abs(v)*rstd[i/cols])
	}
	return worst / 16
}

// offsetRows: a large common offset must not drown the variance, as the one-pass formula would have it.
func (b *bench) offsetRows() {
	const rows, cols = 3, 65
	xv := make([]float64, rows*cols)
	for i := range xv {
		xv[i] = 1000 + b.rng.NormFloat64()
	}
	x := b.put(xv, rows, cols)
	ones := each(xv[:cols], func(float64) float64 { return 1 })
	w, bias := b.put(ones, cols), b.put(make([]float64, cols), cols)
	y, mean, rstd := b.blank(rows, cols), b.blankSum(rows), b.blankSum(rows)
	b.dev.LayerNorm(y, mean, rstd, x, w, bias, 1e-5)
	n, _, _ := normalised(b.read(x), cols, 1e-5, true)
	b.near("layernorm with offset", b.read(y), n, 100*b.tol)
	b.free()
}

func rmsNorms(b *bench) {
	for _, s := range tables {
		rows, cols := s[0], s[1]
		const eps = 1e-6
		x, xv := b.random(2, rows, cols)
		w, wv := b.random(1, cols)
		dy, dyv := b.random(1, rows, cols)
		y, rstd, dx := b.blank(rows, cols), b.blankSum(rows), b.blank(rows, cols)
		what := fmt.Sprintf("rmsnorm %v ", s)
		n, _, rstdV := normalised(xv, cols, eps, false)
		b.dev.RMSNorm(y, rstd, x, w, eps)
		b.want(what+"y", y, affine(n, wv, nil))
		b.want(what+"rstd", rstd, rstdV)
		dxv, dwv, _ := normGrads(n, rstdV, wv, dyv, false)
		b.dev.RMSNormInput(dx, dy, x, w, rstd)
		if cols > 1 {
			b.want(what+"dx", dx, dxv)
		}
		dw, dw0 := b.randomSum(1, cols)
		b.dev.RMSNormWeight(dw, dy, x, rstd)
		b.want(what+"dw", dw, plus(dw0, dwv))
		if len(xv) <= 65 && cols > 1 {
			b.slopes(what+"dx", dx, func(x []float64) []float64 {
				n, _, _ := normalised(x, cols, eps, false)
				return affine(n, wv, nil)
			}, xv, dyv)
		}
		b.free()
	}
}
