package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Instructions on tile registers (Intel SDM vol. 2, "TDPBF16PS" and its neighbours), which the assembler does not know: VEX with three bytes, map 0F38.
// Addresses are base plus a stride for every row, in registers below R8, and perhaps 64.

// low are the numbers of those registers.
var low = map[reg.GPPhysical]byte{reg.RAX: 0, reg.RCX: 1, reg.RDX: 2, reg.RBX: 3, reg.RSI: 6, reg.RDI: 7}

func (e *emitter) raw(bytes ...byte) {
	for _, b := range bytes {
		e.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
	}
}

// Prefixes: vvvv unused, and the operand-size field.
const (
	amxNone = 0x78
	amxF3   = 0x7a
	amxF2   = 0x7b
)

func (e *emitter) tileZero(t byte) { e.raw(0xc4, 0xe2, amxF2, 0x49, 0xc0|t<<3) }

// tileMove loads (amxF2) or stores (amxF3) a tile.
func (e *emitter) tileMove(prefix, t byte, base, stride reg.GPPhysical, further bool) {
	sib := low[stride]<<3 | low[base]
	if further {
		e.raw(0xc4, 0xe2, prefix, 0x4b, 1<<6|t<<3|4, sib, 64)
		return
	}
	e.raw(0xc4, 0xe2, prefix, 0x4b, t<<3|4, sib)
}

// tileDot: dst [16 16] float32 += x [16 rows, 16 pairs] y [16 pairs, 16 columns].
func (e *emitter) tileDot(dst, x, y byte) { e.raw(0xc4, 0xe2, (^y&15)<<3|2, 0x5c, 0xc0|dst<<3|x) }

// amxTiles are the kernels of a multiplication on tile registers.
func amxTiles(ctx *build.Context) {
	e := &emitter{ctx, f32, true}
	shape := e.StaticGlobal("tileShape")
	e.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, word := range []uint64{
		1, 0, // palette
		0x0040004000400040, 0x0040004000400040, 0, 0, // bytes of a row, by tile
		0x1010101010101010, 0, // rows
	} {
		e.AddDatum(8*i, operand.U64(word))
	}
	for _, vecs := range []int{2, 1} {
		e.amxTile(shape, vecs)
	}
}

func (e *emitter) amxTile(shape operand.Mem, vecs int) {
	name := fmt.Sprintf("amx32x%d", 16*vecs)
	e.Function(name)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func(k int, a, b, c *float32, ldc, add int, next *float32, step int)")
	e.Doc(fmt.Sprintf("%s: c (+)= a b, with a [32 k] by rows and b packed [k %d], both in pairs of bfloat16, k the number of pairs, a multiple of 16;", name, 16*vecs),
		"c's rows ldc elements apart. Each 4 of k it asks for two cache lines, step elements apart from next on.")
	load := func(arg string, r reg.GPPhysical) reg.GPPhysical { e.Load(e.Param(arg), r); return r }
	k, a, b := load("k", reg.R8), load("a", reg.RSI), load("b", reg.RBX)
	c, ldc, add := load("c", reg.RDX), load("ldc", reg.RCX), load("add", reg.R9)
	next, step := load("next", reg.R10), load("step", reg.R11)
	lower := reg.RDI // the 16 rows below
	e.SHLQ(operand.Imm(2), ldc)
	e.SHLQ(operand.Imm(2), step)
	e.LEAQ(shape, reg.RAX)
	e.raw(0xc4, 0xe2, amxNone, 0x49, 0x00) // LDTILECFG (RAX)
	corners := func(do func(t byte, base reg.GPPhysical, further bool)) {
		e.MOVQ(ldc, lower)
		e.SHLQ(operand.Imm(4), lower)
		e.ADDQ(c, lower)
		for half, base := range []reg.GPPhysical{c, lower} {
			for v := range vecs {
				do(byte(2*half+v), base, v == 1)
			}
		}
	}
	e.TESTQ(add, add)
	e.JZ(operand.LabelRef("zero"))
	corners(func(t byte, base reg.GPPhysical, further bool) { e.tileMove(amxF2, t, base, ldc, further) })
	e.JMP(operand.LabelRef("begin"))
	e.Label("zero")
	for t := range byte(4) {
		e.tileZero(t)
	}
	e.Label("begin")
	rows := reg.RAX
	e.MOVQ(k, rows)
	e.SHLQ(operand.Imm(2), rows)
	e.MOVQ(rows, lower)
	e.SHLQ(operand.Imm(4), lower)
	e.ADDQ(a, lower)
	e.MOVQ(operand.I32(64*vecs), reg.RCX)
	e.SHRQ(operand.Imm(4), k)
	e.JZ(operand.LabelRef("store"))
	e.Label("loop")
	for v := range vecs {
		e.tileMove(amxF2, byte(6+v), b, reg.RCX, v == 1)
	}
	for half, base := range []reg.GPPhysical{a, lower} {
		x := byte(4 + half)
		e.tileMove(amxF2, x, base, rows, false)
		for v := range vecs {
			e.tileDot(byte(2*half+v), x, byte(6+v))
		}
	}
	for range 4 {
		e.PREFETCHT1(at(next, 0))
		e.PREFETCHT1(at(next, 64))
		e.ADDQ(step, next)
	}
	e.ADDQ(operand.Imm(64), a)
	e.ADDQ(operand.Imm(64), lower)
	e.ADDQ(operand.I32(int32(16*64*vecs)), b)
	e.DECQ(k)
	e.JNZ(operand.LabelRef("loop"))
	e.Label("store")
	load("ldc", ldc)
	e.SHLQ(operand.Imm(2), ldc)
	corners(func(t byte, base reg.GPPhysical, further bool) { e.tileMove(amxF3, t, base, ldc, further) })
	e.raw(0xc4, 0xe2, amxNone, 0x49, 0xc0) // TILERELEASE
	e.RET()
}
