package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// squares sums squares of float32 in float64: four vectors of sums, which is one group of elements.
func squares(ctx *build.Context) {
	for _, wide := range []bool{true, false} {
		e := &emitter{ctx, f64, wide}
		name := "sumSquares" + e.isa()
		e.Function(name)
		e.Attributes(attr.NOSPLIT)
		e.Pragma("noescape")
		e.SignatureExpr("func(src *float32, groups int) float64")
		group := 4 * e.lanes()
		e.Doc(name + ": the sum of squares of groups times " + map[int]string{32: "32", 16: "16"}[group] + " elements.")
		src, n := e.arg("src"), e.arg("groups")
		var sums []reg.VecVirtual
		for range 4 {
			v := e.vec()
			e.zero(v)
			sums = append(sums, v)
		}
		e.Label("loop")
		for i, s := range sums {
			x := e.vec()
			e.VCVTPS2PD(at(src, i*e.bytes()/2), x)
			e.fma(x, x, s)
		}
		e.ADDQ(operand.Imm(uint64(4*group)), src)
		e.DECQ(n)
		e.JNZ(operand.LabelRef("loop"))
		e.add(sums[1], sums[0], sums[0])
		e.add(sums[3], sums[2], sums[2])
		e.add(sums[2], sums[0], sums[0])
		e.foldDouble(sums[0])
		e.Store(sums[0].AsX(), e.ReturnIndex(0))
		e.VZEROUPPER()
		e.RET()
	}
}

// foldDouble leaves the sum of all lanes in lane 0.
func (e *emitter) foldDouble(v reg.VecVirtual) {
	if e.wide {
		high := e.YMM()
		e.VEXTRACTF64X4(operand.Imm(1), v, high)
		e.VADDPD(high, v.AsY(), v.AsY())
	}
	high, x := e.XMM(), v.AsX()
	e.VEXTRACTF128(operand.Imm(1), v.AsY(), high)
	e.VADDPD(high, x, x)
	e.VUNPCKHPD(x, x, high)
	e.VADDPD(high, x, x)
}
