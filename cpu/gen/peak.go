package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peaks measure what the multiply-add units can do: independent sums in registers, nothing else.
func peaks(ctx *build.Context) {
	for _, wide := range []bool{true, false} {
		e := &emitter{ctx, f32, wide}
		sums := 12
		if wide {
			sums = 24
		}
		name := "peak" + e.isa()
		e.Function(name)
		e.Attributes(attr.NOSPLIT)
		e.SignatureExpr("func(rounds int)")
		e.Doc(name + ": rounds times 4 multiply-adds of each of its sums.")
		n := e.arg("rounds")
		var acc []reg.VecVirtual
		for range sums + 2 {
			v := e.vec()
			e.zero(v)
			acc = append(acc, v)
		}
		e.Label("loop")
		for range 4 {
			for _, v := range acc[2:] {
				e.fma(acc[0], acc[1], v)
			}
		}
		e.DECQ(n)
		e.JNZ(operand.LabelRef("loop"))
		e.VZEROUPPER()
		e.RET()
	}
}
