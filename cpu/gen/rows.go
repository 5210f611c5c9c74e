package main

import (
	"github.com/mmcloughlin/avo/build"
)

// rows are the kernels that work along rows of float32.
func rows(ctx *build.Context) {
	t := newTable(ctx)
	for _, s := range rowKernels {
		for _, wide := range []bool{true, false} {
			s.write(ctx, t, wide)
		}
	}
}

// The constants of the tanh form of GELU, doubled: gelu(x) = x sigmoid(2 root (x + cube x^3)).
const (
	geluTwoRoot = 2 * 0.79788456080286535587989211986876
	geluCube    = 0.044715
)

var rowKernels = []spec{
	{name: "rowExp", doc: "dst = scale e^(slope src + shift); returns its sum.",
		ptrs: []string{"dst", "src"}, scalars: []string{"slope", "shift", "scale"}, sums: 1,
		body: func(l *loop) {
			x := l.load("src")
			z := l.mul(x, l.scalars["slope"])
			z = l.plus(z, l.scalars["shift"])
			y := l.mul(l.exp(z), l.scalars["scale"])
			l.store("dst", y)
			l.sum(0, y)
		}},
	{name: "rowExpSum", doc: "the sum of e^(src + shift).",
		ptrs: []string{"src"}, scalars: []string{"shift"}, sums: 1,
		body: func(l *loop) { l.sum(0, l.exp(l.plus(l.load("src"), l.scalars["shift"]))) }},
	{name: "rowMax", doc: "the largest element.",
		ptrs: []string{"src"}, sums: 1, largest: true,
		body: func(l *loop) { l.largest(l.load("src")) }},
	{name: "rowAdd", doc: "dst += src.",
		ptrs: []string{"dst", "src"},
		body: func(l *loop) { l.store("dst", l.plus(l.load("dst"), l.load("src"))) }},
	{name: "rowScale", doc: "dst *= s.",
		ptrs: []string{"dst"}, scalars: []string{"s"},
		body: func(l *loop) { l.store("dst", l.mul(l.load("dst"), l.scalars["s"])) }},
	{name: "rowScaleTo", doc: "dst = s src.",
		ptrs: []string{"dst", "src"}, scalars: []string{"s"},
		body: func(l *loop) { l.store("dst", l.mul(l.load("src"), l.scalars["s"])) }},
	{name: "rowDot", doc: "the sum of x y.",
		ptrs: []string{"x", "y"}, sums: 1,
		body: func(l *loop) { l.sum(0, l.mul(l.load("x"), l.load("y"))) }},
	{name: "rowGelu", doc: "dst = gelu(src), tanh form.",
		ptrs: []string{"dst", "src"},
		body: func(l *loop) {
			x := l.load("src")
			x2 := l.mul(x, x)
			u := l.constant(geluTwoRoot)
			l.muladd(x2, l.num(geluTwoRoot*geluCube), u)
			s := l.sigmoid(l.mul(u, x))
			l.store("dst", l.mul(s, x))
		}},
	{name: "rowGeluGrad", doc: "dst = dy gelu'(src).",
		ptrs: []string{"dst", "src", "dy"},
		body: func(l *loop) {
			x := l.load("src")
			x2 := l.mul(x, x)
			u := l.constant(geluTwoRoot)
			l.muladd(x2, l.num(geluTwoRoot*geluCube), u)
			s := l.sigmoid(l.mul(u, x))
			// slope = s + x s (1-s) (2 root + 6 root cube x^2)
			d := l.constant(geluTwoRoot)
			l.muladd(x2, l.num(3*geluTwoRoot*geluCube), d)
			w := l.mul(l.sub(l.constant(1), s), s)
			w = l.mul(l.mul(w, x), d)
			l.store("dst", l.mul(l.plus(w, s), l.load("dy")))
		}},
	{name: "rowSwiGLU", doc: "dst = silu(gate) up.",
		ptrs: []string{"dst", "gate", "up"},
		body: func(l *loop) {
			x := l.load("gate")
			l.store("dst", l.mul(l.mul(l.sigmoid(x), x), l.load("up")))
		}},
	{name: "rowSwiGLUGrad", doc: "dgate and dup of silu(gate) up.",
		ptrs: []string{"dgate", "dup", "gate", "up", "dy"},
		body: func(l *loop) {
			x, dy := l.load("gate"), l.load("dy")
			s := l.sigmoid(x)
			silu := l.mul(s, x)
			// d silu = s (1 + x (1 - s)) = s + silu (1 - s)
			d := l.mul(l.sub(l.constant(1), s), silu)
			d = l.mul(l.plus(d, s), l.load("up"))
			dup, dgate := l.mul(silu, dy), l.mul(d, dy)
			l.store("dup", dup)
			l.store("dgate", dgate)
		}},
	{name: "rowSum", doc: "the sum of elements.",
		ptrs: []string{"src"}, sums: 1,
		body: func(l *loop) { l.sum(0, l.load("src")) }},
	{name: "rowSquares", doc: "the sum of (src - mean)^2.",
		ptrs: []string{"src"}, scalars: []string{"mean"}, sums: 1,
		body: func(l *loop) { x := l.sub(l.load("src"), l.scalars["mean"]); l.sum(0, l.mul(x, x)) }},
	{name: "rowNorm", doc: "dst = (src - mean) rstd w + b.",
		ptrs: []string{"dst", "src", "w", "b"}, scalars: []string{"mean", "rstd"},
		body: func(l *loop) {
			x := l.mul(l.sub(l.load("src"), l.scalars["mean"]), l.scalars["rstd"])
			y := l.load("b")
			l.muladd(x, l.load("w"), y)
			l.store("dst", y)
		}},
	{name: "rowRMS", doc: "dst = src rstd w.",
		ptrs: []string{"dst", "src", "w"}, scalars: []string{"rstd"},
		body: func(l *loop) { l.store("dst", l.mul(l.mul(l.load("src"), l.scalars["rstd"]), l.load("w"))) }},
	{name: "rowNormSums", doc: "with g = dy w: the sums of g and of g (src - mean).",
		ptrs: []string{"dy", "w", "src"}, scalars: []string{"mean"}, sums: 2,
		body: func(l *loop) {
			g := l.mul(l.load("dy"), l.load("w"))
			x := l.mul(l.sub(l.load("src"), l.scalars["mean"]), g)
			l.sum(0, g)
			l.sum(1, x)
		}},
	{name: "rowNormGrad", doc: "dst = rstd (dy w - sum - (src - mean) rstd dot).",
		ptrs: []string{"dst", "dy", "w", "src"}, scalars: []string{"mean", "rstd", "sum", "dot"},
		body: func(l *loop) {
			g := l.sub(l.mul(l.load("dy"), l.load("w")), l.scalars["sum"])
			x := l.mul(l.sub(l.load("src"), l.scalars["mean"]), l.scalars["rstd"])
			l.VFNMADD231PS(l.scalars["dot"], x, g)
			l.store("dst", l.mul(g, l.scalars["rstd"]))
		}},
	{name: "rowNormWeight", doc: "dw += dy (src - mean) rstd.",
		ptrs: []string{"dw", "dy", "src"}, scalars: []string{"mean", "rstd"},
		body: func(l *loop) {
			x := l.mul(l.sub(l.load("src"), l.scalars["mean"]), l.scalars["rstd"])
			w := l.load("dw")
			l.muladd(x, l.load("dy"), w)
			l.store("dw", w)
		}},
	{name: "rowScores", doc: "dst = p (dp - delta) scale: the scores' gradient from weights and their gradient.",
		ptrs: []string{"dst", "p", "dp"}, scalars: []string{"delta", "scale"},
		body: func(l *loop) {
			x := l.mul(l.sub(l.load("dp"), l.scalars["delta"]), l.scalars["scale"])
			l.store("dst", l.mul(x, l.load("p")))
		}},
	{name: "rowRope", doc: "turns the pairs (x, y) by angles of the given cosines and sines, back where sign is -1.",
		ptrs: []string{"x", "y", "cos", "sin"}, scalars: []string{"sign"},
		body: func(l *loop) {
			x, y, c := l.load("x"), l.load("y"), l.load("cos")
			s := l.mul(l.load("sin"), l.scalars["sign"])
			xc, yc := l.mul(x, c), l.mul(y, c)
			l.VFNMADD231PS(y, s, xc)
			l.muladd(x, s, yc)
			l.store("x", xc)
			l.store("y", yc)
		}},
	{name: "rowBlind", doc: "dst = -Inf where a number is not the one of the row.",
		ptrs: []string{"dst", "numbers"}, numbers: "numbers", word: "own",
		body: func(l *loop) {
			x := l.load("dst")
			l.blind(x, l.load("numbers"), l.scalars["own"])
			l.store("dst", x)
		}},
	{name: "rowSGD", doc: "w = w - rate (scale grad + decay w).",
		ptrs: []string{"w", "grad"}, scalars: []string{"rate", "scale", "decay"},
		body: func(l *loop) {
			w := l.load("w")
			step := l.mul(l.load("grad"), l.scalars["scale"])
			l.muladd(w, l.scalars["decay"], step)
			l.VFNMADD231PS(l.scalars["rate"], step, w)
			l.store("w", w)
		}},
	{name: "rowMomentum", doc: "m = momentum m + scale grad + decay w, w = w - rate m.",
		ptrs: []string{"w", "grad", "m"}, scalars: []string{"rate", "momentum", "scale", "decay"},
		body: func(l *loop) {
			w := l.load("w")
			m := l.mul(l.load("m"), l.scalars["momentum"])
			l.muladd(l.load("grad"), l.scalars["scale"], m)
			l.muladd(w, l.scalars["decay"], m)
			l.store("m", m)
			l.VFNMADD231PS(l.scalars["rate"], m, w)
			l.store("w", w)
		}},
	{name: "rowAdamW", doc: "one step of AdamW: m = beta1 m + rest1 scale grad, v = beta2 v + rest2 (scale grad)^2, w = keep w - step m / (sqrt(v) + eps).",
		ptrs:    []string{"w", "grad", "m", "v"},
		scalars: []string{"scale", "beta1", "rest1", "beta2", "rest2", "step", "eps", "keep"},
		body: func(l *loop) {
			g := l.mul(l.load("grad"), l.scalars["scale"])
			m := l.mul(l.load("m"), l.scalars["beta1"])
			l.muladd(g, l.scalars["rest1"], m)
			l.store("m", m)
			v := l.mul(l.load("v"), l.scalars["beta2"])
			g2 := l.mul(g, g)
			l.muladd(g2, l.scalars["rest2"], v)
			l.store("v", v)
			l.VSQRTPS(v, v)
			l.VADDPS(l.scalars["eps"], v, v)
			l.VMULPS(l.scalars["step"], m, m)
			l.VDIVPS(v, m, m)
			w := l.mul(l.load("w"), l.scalars["keep"])
			l.store("w", l.sub(w, m))
		}},
}
