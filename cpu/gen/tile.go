package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tiles are the micro-kernels of matrix multiplication. A tile of rows x vecs vectors of c stays in
// registers over all of k; rows x vecs is chosen so that tile, one row of b and two elements of a
// fill the register file: 8 x 3 of 32 registers, 4 x 3 of 16.
func tiles(ctx *build.Context) {
	for _, t := range []elem{f32, f64} {
		for vecs := 3; vecs >= 1; vecs-- {
			(&tile{emitter{ctx, t, true}, 8, vecs}).write()
		}
		for vecs := 3; vecs >= 1; vecs-- {
			(&tile{emitter{ctx, t, false}, 4, vecs}).write()
		}
	}
}

type tile struct {
	emitter
	rows, vecs int
}

const unroll = 4

func (t *tile) write() {
	cols := t.vecs * t.lanes()
	name := fmt.Sprintf("tile%dx%d%s%s", t.rows, cols, t.isa(), t.suffix)
	t.Function(name)
	t.Attributes(attr.NOSPLIT)
	t.Pragma("noescape")
	t.SignatureExpr(fmt.Sprintf("func(k int, a, b, c *%[1]s, ldc, rows, cols, add int, next *%[1]s, step int)", t.goType))
	t.Doc(fmt.Sprintf("%s: c (+)= a b, with a packed [k %d], b packed [k %d], c's rows ldc elements apart;", name, t.rows, cols),
		"only the first rows and cols of the tile are stored. Each 4 of k it asks for two cache lines, step elements apart from next on.")
	k, a, b, c, ldc := t.arg("k"), t.arg("a"), t.arg("b"), t.arg("c"), t.arg("ldc")
	t.SHLQ(operand.Imm(map[int]uint64{4: 2, 8: 3}[t.size]), ldc)
	acc := t.accumulators()
	t.prefetch(c, ldc)
	t.products(name, k, a, b, acc)
	t.store(name, c, ldc, acc)
	t.RET()
}

func (t *tile) accumulators() [][]reg.VecVirtual {
	var acc [][]reg.VecVirtual
	for range t.rows {
		var row []reg.VecVirtual
		for range t.vecs {
			v := t.vec()
			t.zero(v)
			row = append(row, v)
		}
		acc = append(acc, row)
	}
	return acc
}

// prefetch asks for c early: it is used only once all of k is summed.
func (t *tile) prefetch(c, ldc reg.Register) {
	p := t.GP64()
	t.MOVQ(c, p)
	for range t.rows {
		for off := 0; off < t.vecs*t.bytes(); off += 64 {
			t.PREFETCHT0(at(p, off))
		}
		t.ADDQ(ldc, p)
	}
}

// products sums over k: unrolled, then what is left.
func (t *tile) products(name string, k, a, b reg.Register, acc [][]reg.VecVirtual) {
	rounds := t.GP64()
	next, step := t.arg("next"), t.arg("step")
	t.SHLQ(operand.Imm(map[int]uint64{4: 2, 8: 3}[t.size]), step)
	t.MOVQ(k, rounds)
	t.SHRQ(operand.Imm(2), rounds)
	t.JZ(operand.LabelRef("rest"))
	t.Label("loop")
	t.PREFETCHT1(at(next, 0))
	t.PREFETCHT1(at(next, 64))
	t.ADDQ(step, next)
	for u := range unroll {
		t.step(a, b, u, acc)
	}
	t.advance(a, b, unroll)
	t.DECQ(rounds)
	t.JNZ(operand.LabelRef("loop"))
	t.Label("rest")
	t.ANDQ(operand.Imm(unroll-1), k)
	t.JZ(operand.LabelRef("store"))
	t.Label("one")
	t.step(a, b, 0, acc)
	t.advance(a, b, 1)
	t.DECQ(k)
	t.JNZ(operand.LabelRef("one"))
	t.Label("store")
}

func (t *tile) advance(a, b reg.Register, steps int) {
	t.ADDQ(operand.I32(int32(steps*t.rows*t.size)), a)
	t.ADDQ(operand.I32(int32(steps*t.vecs*t.bytes())), b)
}

func (t *tile) step(a, b reg.Register, u int, acc [][]reg.VecVirtual) {
	var bs []reg.VecVirtual
	for v := range t.vecs {
		r := t.vec()
		t.mov(at(b, (u*t.vecs+v)*t.bytes()), r)
		bs = append(bs, r)
	}
	for i := range t.rows {
		x := t.vec()
		t.broadcast(at(a, (u*t.rows+i)*t.size), x)
		for v := range t.vecs {
			t.fma(bs[v], x, acc[i][v])
		}
	}
}

// store writes the valid part of the tile, adding c's old contents when asked to.
func (t *tile) store(name string, c, ldc reg.Register, acc [][]reg.VecVirtual) {
	rows := t.arg("rows")
	masks := t.columnMasks()
	add := t.arg("add")
	t.TESTQ(add, add)
	t.JNZ(operand.LabelRef("add"))
	t.storeRows(c, ldc, rows, acc, masks, false)
	t.Label("add")
	t.storeRows(c, ldc, rows, acc, masks, true)
	t.Label("done")
	if !t.wide {
		t.VZEROUPPER()
		return
	}
	t.VZEROUPPER()
}

func (t *tile) storeRows(c, ldc, rows reg.Register, acc [][]reg.VecVirtual, masks []reg.Register, add bool) {
	for i := range t.rows {
		if i > 0 {
			t.CMPQ(rows, operand.Imm(uint64(i)))
			t.JE(operand.LabelRef("done"))
		}
		for v := range t.vecs {
			t.storeVector(at(c, v*t.bytes()), acc[i][v], masks[v], add)
		}
		t.ADDQ(ldc, c)
	}
	t.JMP(operand.LabelRef("done"))
}

func (t *tile) storeVector(c operand.Mem, v reg.VecVirtual, mask reg.Register, add bool) {
	if t.wide {
		if add {
			t.add(c, v, mask, v)
		}
		t.mov(v, mask, c)
		return
	}
	masked := func(ops ...op) {
		if t.size == 8 {
			t.VMASKMOVPD(ops[0], ops[1], ops[2])
			return
		}
		t.VMASKMOVPS(ops[0], ops[1], ops[2])
	}
	if add {
		old := t.vec()
		masked(c, mask, old)
		t.add(old, v, v)
	}
	masked(v, mask, c)
}

// columnMasks has a mask of the valid columns for each vector: opmasks for AVX-512, else vectors cut from
// a table of ones followed by zeros.
func (t *tile) columnMasks() []reg.Register {
	cols := t.arg("cols")
	var masks []reg.Register
	if t.wide {
		bits, all := t.GP64(), t.GP64()
		t.MOVQ(operand.I64(-1), all)
		t.BZHIQ(cols, all, bits)
		for v := range t.vecs {
			k := t.K()
			t.KMOVW(bits.As32(), k)
			masks = append(masks, k)
			if v+1 < t.vecs {
				t.SHRQ(operand.Imm(uint64(t.lanes())), bits)
			}
		}
		return masks
	}
	width := t.vecs * t.lanes()
	table := t.ones(width)
	base := t.GP64()
	t.LEAQ(table, base)
	offset := t.GP64()
	t.MOVQ(operand.I32(int32(width)), offset)
	t.SUBQ(cols, offset)
	for v := range t.vecs {
		m := t.vec()
		t.VMOVUPS(operand.Mem{Base: base, Index: offset, Scale: uint8(t.size), Disp: v * t.bytes()}, m)
		masks = append(masks, m)
	}
	return masks
}

// ones is a table of n elements of all ones and n of zeros.
func (t *tile) ones(n int) operand.Mem {
	name := fmt.Sprintf("ones%d%s", n, t.suffix)
	m := t.StaticGlobal(name)
	t.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 2 * n {
		v := operand.U64(0)
		if i < n {
			v = ^v
		}
		if t.size == 8 {
			t.AddDatum(8*i, v)
		} else {
			t.AddDatum(4*i, operand.U32(v))
		}
	}
	return m
}
