package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bfloats convert between float32 and bfloat16, its upper half. AVX-512 only: before it, nothing narrows
// a vector in one instruction.
func bfloats(ctx *build.Context) {
	e := &emitter{ctx, f32, true}
	e.convert("rowFromBF16", "func(dst *float32, src *uint16, n int)", "dst = src, exactly.", 64, 32, func(dst, src operand.Mem, k reg.Register) {
		x := e.vec()
		e.VPMOVZXWD_Z(src, k, x)
		e.VPSLLD(operand.Imm(16), x, x)
		e.VMOVUPS(x, k, dst)
	})
	t := newTable(ctx)
	one, half, nan := t.bits(1), t.bits(0x7fff), t.bits(0x7fc0)
	e.convert("rowToBF16", "func(dst *uint16, src *float32, n int)", "dst = src, to nearest even; NaN as the quiet one.", 32, 64, func(dst, src operand.Mem, k reg.Register) {
		x, y := e.vec(), e.vec()
		e.VMOVUPS_Z(src, k, x)
		e.VPSRLD(operand.Imm(16), x, y)
		e.VPANDD(one, y, y)
		e.VPADDD(half, y, y)
		e.VPADDD(x, y, y)
		e.VPSRLD(operand.Imm(16), y, y)
		odd := e.K()
		e.VCMPPS(operand.Imm(3), x, x, odd) // unordered: NaN
		e.VMOVDQU32(nan, odd, y)            // tables are not aligned
		e.VPMOVDW(y, k, dst)
	})
}

// convert writes a loop of 16 elements that are so many bytes apart in dst and src.
func (e *emitter) convert(name, signature, doc string, dstStep, srcStep uint64, body func(dst, src operand.Mem, k reg.Register)) {
	name += e.isa()
	e.Function(name)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr(signature)
	e.Doc(name + ": " + doc)
	dst, src, n := e.arg("dst"), e.arg("src"), e.arg("n")
	k, all := e.K(), e.GP64()
	e.MOVQ(operand.I64(-1), all)
	e.KMOVW(all.As32(), k)
	e.Label("loop")
	e.CMPQ(n, operand.Imm(16))
	e.JGE(operand.LabelRef("body"))
	e.TESTQ(n, n)
	e.JZ(operand.LabelRef("end"))
	bits := e.GP64()
	e.BZHIQ(n, all, bits)
	e.KMOVW(bits.As32(), k)
	e.MOVQ(operand.I32(16), n)
	e.Label("body")
	body(at(dst, 0), at(src, 0), k)
	e.ADDQ(operand.Imm(dstStep), dst)
	e.ADDQ(operand.Imm(srcStep), src)
	e.SUBQ(operand.Imm(16), n)
	e.JMP(operand.LabelRef("loop"))
	e.Label("end")
	e.VZEROUPPER()
	e.RET()
}
