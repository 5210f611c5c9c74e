package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// zmm are the vector registers by number: the instructions below are not known to the assembler and are written as bytes, so
// these kernels choose registers themselves.
var zmm = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

// bytes of an EVEX instruction on three 64-byte registers in map 0F38 (Intel SDM vol. 2, §2.7.1). prefix is 2 for F3, 3 for F2.
func (e *emitter) evex(opcode, prefix byte, rm, vvvv, dst int) {
	not := func(n, bit int) byte { return byte(^n>>bit) & 1 }
	p0 := not(dst, 3)<<7 | not(rm, 4)<<6 | not(rm, 3)<<5 | not(dst, 4)<<4 | 2
	p1 := byte(^vvvv&15)<<3 | 1<<2 | prefix
	p2 := byte(2)<<5 | not(vvvv, 4)<<3
	modrm := 3<<6 | byte(dst&7)<<3 | byte(rm&7)
	for _, b := range []byte{0x62, p0, p1, p2, opcode, modrm} {
		e.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
	}
}

// dotPairs: each float32 of dst += the products of the two bfloat16 in the same place of x and y (VDPBF16PS).
func (e *emitter) dotPairs(x, y, dst int) { e.evex(0x52, 2, y, x, dst) }

// narrow: the lower half of dst is low, the upper half high, rounded to bfloat16 (VCVTNE2PS2BF16).
func (e *emitter) narrow(low, high, dst int) { e.evex(0x72, 3, low, high, dst) }

// bfloatTiles are the tiles of a multiplication of bfloat16: those of float32 with pairs of numbers, k and k+1, in
// each 32 bits.
func bfloatTiles(ctx *build.Context) {
	for vecs := 3; vecs >= 1; vecs-- {
		(&bfloatTile{tile{emitter{ctx, f32, true}, 8, vecs}}).write()
	}
	e := &emitter{ctx, f32, true}
	order := e.interleaving()
	for _, lanes := range []int{8, 16} {
		e.packPairs(lanes, order)
		e.packHalves(lanes)
	}
	peakPairs(e)
}

type bfloatTile struct{ tile }

// Registers: the row of b, two for broadcast pairs of a in turn, and the sums.
const (
	bfloatB   = 0
	bfloatA   = 3
	bfloatSum = 8
)

func (t *bfloatTile) write() {
	cols := t.vecs * t.lanes()
	name := fmt.Sprintf("tile%dx%dBF16", t.rows, cols)
	t.Function(name)
	t.Attributes(attr.NOSPLIT)
	t.Pragma("noescape")
	t.SignatureExpr("func(k int, a, b, c *float32, ldc, rows, cols, add int, next *float32, step int)")
	t.Doc(fmt.Sprintf("%s: c (+)= a b, with a packed [k %d] and b packed [k %d] in pairs of bfloat16, k the number of pairs,", name, t.rows, cols),
		"c's rows ldc elements apart; only the first rows and cols of the tile are stored. Each 4 of k it asks for two cache lines, step elements apart from next on.")
	k, a, b, c, ldc := t.arg("k"), t.arg("a"), t.arg("b"), t.arg("c"), t.arg("ldc")
	t.SHLQ(operand.Imm(2), ldc)
	for i := range t.rows * t.vecs {
		r := zmm[bfloatSum+i]
		t.VPXORD(r, r, r)
	}
	t.prefetch(c, ldc)
	t.TESTQ(k, k)
	t.JZ(operand.LabelRef("store"))
	rounds := t.GP64()
	next, step := t.arg("next"), t.arg("step")
	t.SHLQ(operand.Imm(2), step)
	t.MOVQ(k, rounds)
	t.SHRQ(operand.Imm(2), rounds)
	t.JZ(operand.LabelRef("rest"))
	t.Label("loop")
	t.PREFETCHT1(at(next, 0))
	t.PREFETCHT1(at(next, 64))
	t.ADDQ(step, next)
	for u := range unroll {
		t.step(a, b, u)
	}
	t.advance(a, b, unroll)
	t.DECQ(rounds)
	t.JNZ(operand.LabelRef("loop"))
	t.Label("rest")
	t.ANDQ(operand.Imm(unroll-1), k)
	t.JZ(operand.LabelRef("store"))
	t.Label("one")
	t.step(a, b, 0)
	t.advance(a, b, 1)
	t.DECQ(k)
	t.JNZ(operand.LabelRef("one"))
	t.Label("store")
	t.storeSums(c, ldc)
	t.RET()
}

func (t *bfloatTile) step(a, b reg.Register, u int) {
	for v := range t.vecs {
		t.VMOVUPS(at(b, (u*t.vecs+v)*64), zmm[bfloatB+v])
	}
	for i := range t.rows {
		x := bfloatA + i%2
		t.VPBROADCASTD(at(a, (u*t.rows+i)*4), zmm[x])
		for v := range t.vecs {
			t.dotPairs(bfloatB+v, x, bfloatSum+i*t.vecs+v)
		}
	}
}

// storeSums writes the valid part of the tile, adding c's old contents when asked to.
func (t *bfloatTile) storeSums(c, ldc reg.Register) {
	rows := t.arg("rows")
	masks := t.columnMasks()
	add := t.arg("add")
	t.TESTQ(add, add)
	t.JNZ(operand.LabelRef("add"))
	for _, add := range []bool{false, true} {
		if add {
			t.Label("add")
		}
		for i := range t.rows {
			if i > 0 {
				t.CMPQ(rows, operand.Imm(uint64(i)))
				t.JE(operand.LabelRef("done"))
			}
			for v := range t.vecs {
				r, m := zmm[bfloatSum+i*t.vecs+v], at(c, v*64)
				if add {
					t.VADDPS(m, r, masks[v], r)
				}
				t.VMOVUPS(r, masks[v], m)
			}
			t.ADDQ(ldc, c)
		}
		t.JMP(operand.LabelRef("done"))
	}
	t.Label("done")
	t.VZEROUPPER()
}

// packPairs is packRows for pairs of rows of float32 that become one of pairs of bfloat16.
func (e *emitter) packPairs(lanes int, order operand.Mem) {
	name := fmt.Sprintf("packPairs%d", lanes)
	e.Function(name)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func(dst, src *float32, stride, pairs, pieces, width, panel int)")
	e.Doc(fmt.Sprintf("%s: of each two rows, stride bytes apart in src, the pieces of %d pairs rounded to bfloat16 go to dst, panel bytes apart;", name, lanes),
		"the pieces of two rows lie width bytes after those of the two before.")
	dst, src, stride, pairs, pieces := e.arg("dst"), e.arg("src"), e.arg("stride"), e.arg("pairs"), e.arg("pieces")
	width, panel := e.arg("width"), e.arg("panel")
	index := reg.Z5
	e.VMOVDQU64(order, index)
	e.Label("row")
	upper, lower, to, n := e.GP64(), e.GP64(), e.GP64(), e.GP64()
	e.MOVQ(src, upper)
	e.LEAQ(operand.Mem{Base: src, Index: stride, Scale: 1}, lower)
	e.MOVQ(dst, to)
	e.MOVQ(pieces, n)
	e.Label("piece")
	if lanes == 16 {
		e.VMOVUPS(at(upper, 0), reg.Z0)
		e.VMOVUPS(at(lower, 0), reg.Z1)
	} else {
		e.VMOVUPS(at(upper, 0), reg.Y0) // the upper halves are zero
		e.VMOVUPS(at(lower, 0), reg.Y1)
	}
	e.PREFETCHT0(operand.Mem{Base: upper, Index: stride, Scale: 8})
	e.PREFETCHT0(operand.Mem{Base: lower, Index: stride, Scale: 8})
	e.narrow(0, 1, 2)
	e.VPERMW(reg.Z2, index, reg.Z3)
	if lanes == 16 {
		e.VMOVUPS(reg.Z3, at(to, 0))
	} else {
		e.VMOVUPS(reg.Y3, at(to, 0))
	}
	e.ADDQ(operand.Imm(uint64(4*lanes)), upper)
	e.ADDQ(operand.Imm(uint64(4*lanes)), lower)
	e.ADDQ(panel, to)
	e.DECQ(n)
	e.JNZ(operand.LabelRef("piece"))
	e.ADDQ(width, dst)
	e.LEAQ(operand.Mem{Base: src, Index: stride, Scale: 2}, src)
	e.DECQ(pairs)
	e.JNZ(operand.LabelRef("row"))
	e.VZEROUPPER()
	e.RET()
}

// packHalves is packPairs for rows that are bfloat16 already.
func (e *emitter) packHalves(lanes int) {
	name := fmt.Sprintf("packHalves%d", lanes)
	e.Function(name)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func(dst *float32, src *uint16, stride, pairs, pieces, width, panel int)")
	e.Doc(fmt.Sprintf("%s: of each two rows of bfloat16, stride bytes apart in src, the pieces of %d pairs go to dst, panel bytes apart;", name, lanes),
		"the pieces of two rows lie width bytes after those of the two before.")
	dst, src, stride, pairs, pieces := e.arg("dst"), e.arg("src"), e.arg("stride"), e.arg("pairs"), e.arg("pieces")
	width, panel := e.arg("width"), e.arg("panel")
	var x, y reg.VecVirtual = e.ZMM(), e.ZMM()
	if lanes == 8 {
		x, y = e.YMM(), e.YMM()
	}
	e.Label("row")
	upper, lower, to, n := e.GP64(), e.GP64(), e.GP64(), e.GP64()
	e.MOVQ(src, upper)
	e.LEAQ(operand.Mem{Base: src, Index: stride, Scale: 1}, lower)
	e.MOVQ(dst, to)
	e.MOVQ(pieces, n)
	e.Label("piece")
	e.VPMOVZXWD(at(upper, 0), x)
	e.VPMOVZXWD(at(lower, 0), y)
	e.PREFETCHT0(operand.Mem{Base: upper, Index: stride, Scale: 8})
	e.PREFETCHT0(operand.Mem{Base: lower, Index: stride, Scale: 8})
	e.VPSLLD(operand.Imm(16), y, y)
	e.VPORD(x, y, y)
	e.VMOVUPS(y, at(to, 0))
	e.ADDQ(operand.Imm(uint64(2*lanes)), upper)
	e.ADDQ(operand.Imm(uint64(2*lanes)), lower)
	e.ADDQ(panel, to)
	e.DECQ(n)
	e.JNZ(operand.LabelRef("piece"))
	e.ADDQ(width, dst)
	e.LEAQ(operand.Mem{Base: src, Index: stride, Scale: 2}, src)
	e.DECQ(pairs)
	e.JNZ(operand.LabelRef("row"))
	e.VZEROUPPER()
	e.RET()
}

// interleaving takes 0 16 1 17 ... : numbers of two rows in turn.
func (e *emitter) interleaving() operand.Mem {
	m := e.StaticGlobal("interleaving")
	e.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		e.AddDatum(4*i, operand.U32(uint32(i)|uint32(16+i)<<16))
	}
	return m
}

// peakPairs is what the units for pairs of bfloat16 can do.
func peakPairs(e *emitter) {
	e.Function("peakBF16")
	e.Attributes(attr.NOSPLIT)
	e.SignatureExpr("func(rounds int)")
	e.Doc("peakBF16: rounds times 4 multiply-adds of pairs for each of its 24 sums.")
	n := e.arg("rounds")
	for _, r := range zmm {
		e.VPXORD(r, r, r)
	}
	e.Label("loop")
	for range 4 {
		for i := range 24 {
			e.dotPairs(bfloatB, bfloatA, bfloatSum+i)
		}
	}
	e.DECQ(n)
	e.JNZ(operand.LabelRef("loop"))
	e.VZEROUPPER()
	e.RET()
}
