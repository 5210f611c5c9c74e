package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// golden is the step of SplitMix64, see tensor.Bits; the factors are those of its mixing function.
const (
	golden  = 0x9e3779b97f4a7c15
	factor1 = 0xbf58476d1ce4e5b9
	factor2 = 0x94d049bb133111eb
)

// dropout makes the random stream and applies its mask in one pass. Only AVX-512 multiplies 64-bit numbers.
func dropout(ctx *build.Context) {
	e := &emitter{ctx, f32, true}
	name := "rowDropout" + e.isa()
	e.Function(name)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func(dst, src *float32, n int, state, limit uint64, scale float32)")
	e.Doc(name + ": dst = scale src, or 0 where the mix of the state, which grows by a fixed step an element, is below limit.")
	dst, src, n := e.arg("dst"), e.arg("src"), e.arg("n")
	state, limit, scale := e.vec(), e.vec(), e.vec()
	e.VPBROADCASTQ(e.arg("state"), state)
	e.VPBROADCASTQ(e.arg("limit"), limit)
	e.VBROADCASTSS(e.Load(e.Param("scale"), e.XMM()), scale)
	low, high := e.vec(), e.vec()
	e.VPADDQ(e.quads("goldenLow", 0), state, low)
	e.VPADDQ(e.quads("goldenHigh", 8), state, high)
	step, f1, f2 := e.wordVector(16*golden%(1<<64)), e.wordVector(factor1), e.wordVector(factor2)
	k := e.K()
	all := e.GP64()
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
	kLow, kHigh, keep := e.K(), e.K(), e.K()
	e.VPCMPUQ(operand.Imm(5), limit, e.mix(low, f1, f2), kLow)
	e.VPCMPUQ(operand.Imm(5), limit, e.mix(high, f1, f2), kHigh)
	e.KUNPCKBW(kLow, kHigh, keep)
	e.VPADDQ(step, low, low)
	e.VPADDQ(step, high, high)
	x, y := e.vec(), e.vec()
	e.VMOVUPS_Z(at(src, 0), k, x)
	e.VMULPS_Z(scale, x, keep, y)
	e.VMOVUPS(y, k, at(dst, 0))
	e.ADDQ(operand.Imm(64), src)
	e.ADDQ(operand.Imm(64), dst)
	e.SUBQ(operand.Imm(16), n)
	e.JMP(operand.LabelRef("loop"))
	e.Label("end")
	e.VZEROUPPER()
	e.RET()
}

// mix is the output function of SplitMix64.
func (e *emitter) mix(state, f1, f2 reg.VecVirtual) reg.VecVirtual {
	z := e.vec()
	t := e.vec()
	e.VPSRLQ(operand.Imm(30), state, t)
	e.VPXORQ(t, state, z)
	e.VPMULLQ(f1, z, z)
	e.VPSRLQ(operand.Imm(27), z, t)
	e.VPXORQ(t, z, z)
	e.VPMULLQ(f2, z, z)
	e.VPSRLQ(operand.Imm(31), z, t)
	e.VPXORQ(t, z, z)
	return z
}

func (e *emitter) wordVector(x uint64) reg.VecVirtual {
	word, v := e.GP64(), e.vec()
	e.MOVQ(operand.U64(x), word)
	e.VPBROADCASTQ(word, v)
	return v
}

// quads is a table of eight multiples of golden, from first.
func (e *emitter) quads(name string, first int) operand.Mem {
	m := e.StaticGlobal(name)
	e.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		e.AddDatum(8*i, operand.U64(uint64(first+i)*golden))
	}
	return m
}
