package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exp is e^x: x = n ln 2 + r with |r| <= ln 2 / 2, e^r by a polynomial of degree 7, times 2^n (Cody & Waite 1980, ch. 6). Below -87.3 the
// result is 0, above 88.3 it stays at e^88.3, NaN stays NaN.
func (l *loop) exp(x reg.VecVirtual) reg.VecVirtual {
	lo, hi := l.constant(-87.33), l.constant(88.37)
	t := l.vec()
	l.VMINPS(x, hi, t) // with NaN the first operand here, x, is the result
	y := l.vec()
	l.VMAXPS(t, lo, y)
	n := l.mul(y, l.num(1.44269504088896341))
	if l.wide {
		l.VRNDSCALEPS(operand.Imm(0), n, n)
	} else {
		l.VROUNDPS(operand.Imm(0), n, n)
	}
	r := y
	l.VFNMADD231PS(l.num(0.693359375), n, r)
	l.VFNMADD231PS(l.num(-2.12194440e-4), n, r)
	p := l.constant(1.9875691500e-4)
	for _, c := range []float64{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		l.VFMADD213PS(l.num(c), r, p)
	}
	out := l.plus(r, l.num(1))
	r2 := l.mul(r, r)
	l.muladd(r2, p, out)
	return l.scale2(out, n, x, lo)
}

// scale2 is out 2^n, and 0 where x < lo.
func (l *loop) scale2(out, n, x, lo reg.VecVirtual) reg.VecVirtual {
	if l.wide {
		k := l.K()
		l.VCMPPS(operand.Imm(21), lo, x, k) // not less than: true for NaN
		v := l.vec()
		l.VSCALEFPS_Z(n, out, k, v)
		return v
	}
	l.VCVTPS2DQ(n, n)
	l.VPADDD(l.table.bits(127), n, n)
	l.VPSLLD(operand.Imm(23), n, n)
	l.VMULPS(n, out, out)
	l.VCMPPS(operand.Imm(21), lo, x, n)
	l.VANDPS(n, out, out)
	return out
}

// sigmoid is 1 / (1 + e^-x).
func (l *loop) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	zero := l.vec()
	l.zero(zero)
	e := l.exp(l.sub(zero, x))
	return l.div(l.constant(1), l.plus(e, l.num(1)))
}
