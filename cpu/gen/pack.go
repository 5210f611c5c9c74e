package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packs are the copies that bring operands into the order in which tiles read them.
func packs(ctx *build.Context) {
	for _, size := range []int{16, 32, 64} {
		packRows(ctx, size)
	}
	for _, rows := range []int{8, 4} {
		(&transpose{emitter{ctx, f32, false}, rows, 8}).write()
	}
	(&transpose{emitter{ctx, f64, false}, 4, 4}).write()
}

// ahead is the logarithm of how many rows before its use a strided row is asked for: no processor foresees such rows by itself.
const ahead = 3

// packRows cuts rows into panels: piece i of a row goes to panel i, where the pieces of all rows lie together.
func packRows(ctx *build.Context, size int) {
	e := &emitter{ctx, f32, size == 64}
	name := fmt.Sprintf("packRows%d", size)
	e.Function(name)
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func(dst, src *byte, stride, rows, pieces, width, panel int)")
	e.Doc(fmt.Sprintf("%s: of each of rows, stride bytes apart in src, the pieces of %d bytes go to dst, panel bytes apart;", name, size),
		"each row's pieces lie width bytes after those of the row before.")
	dst, src, stride, rows, pieces := e.arg("dst"), e.arg("src"), e.arg("stride"), e.arg("rows"), e.arg("pieces")
	width, panel := e.arg("width"), e.arg("panel")
	lines, next := e.GP64(), e.GP64()
	e.MOVQ(stride, lines)
	e.SHLQ(operand.Imm(ahead), lines)
	e.Label("row")
	from, to, n := e.GP64(), e.GP64(), e.GP64()
	e.MOVQ(src, from)
	e.MOVQ(dst, to)
	e.MOVQ(pieces, n)
	e.LEAQ(operand.Mem{Base: src, Index: lines, Scale: 1}, next)
	e.Label("piece")
	x := map[int]func() reg.VecVirtual{16: e.XMM, 32: e.YMM, 64: e.ZMM}[size]()
	e.PREFETCHT0(at(next, 0))
	e.VMOVUPS(at(from, 0), x)
	e.VMOVUPS(x, at(to, 0))
	e.ADDQ(operand.Imm(uint64(size)), from)
	e.ADDQ(operand.Imm(uint64(size)), next)
	e.ADDQ(panel, to)
	e.DECQ(n)
	e.JNZ(operand.LabelRef("piece"))
	e.ADDQ(width, dst)
	e.ADDQ(stride, src)
	e.DECQ(rows)
	e.JNZ(operand.LabelRef("row"))
	e.VZEROUPPER()
	e.RET()
}

// transpose turns blocks of rows x cols elements.
type transpose struct {
	emitter
	rows, cols int
}

func (t *transpose) write() {
	name := fmt.Sprintf("transpose%dx%d%s", t.rows, t.cols, t.suffix)
	t.Function(name)
	t.Attributes(attr.NOSPLIT)
	t.Pragma("noescape")
	t.SignatureExpr(fmt.Sprintf("func(dst *%[1]s, width int, src *%[1]s, stride, blocks int)", t.goType))
	t.Doc(fmt.Sprintf("%s: dst[p*width+j] = src[j*stride+p] for %d rows j and blocks times %d columns p.", name, t.rows, t.cols))
	dst, width, src, stride, blocks := t.arg("dst"), t.arg("width"), t.arg("src"), t.arg("stride"), t.arg("blocks")
	for _, r := range []reg.Register{width, stride} {
		t.SHLQ(operand.Imm(map[int]uint64{4: 2, 8: 3}[t.size]), r)
	}
	below := t.GP64() // the rows after these, most likely next
	t.MOVQ(stride, below)
	t.SHLQ(operand.Imm(map[int]uint64{8: 3, 4: 2}[t.rows]), below)
	t.ADDQ(src, below)
	t.Label("block")
	from := t.GP64()
	t.MOVQ(below, from)
	for range t.rows {
		t.PREFETCHT0(at(from, 0))
		t.ADDQ(stride, from)
	}
	t.ADDQ(operand.Imm(uint64(t.cols*t.size)), below)
	t.MOVQ(src, from)
	switch {
	case t.size == 8:
		t.block4x4(dst, width, from, stride)
	case t.rows == 8:
		t.block8x8(dst, width, from, stride)
	default:
		t.block4x8(dst, width, from, stride)
	}
	t.ADDQ(operand.Imm(uint64(t.cols*t.size)), src)
	t.DECQ(blocks)
	t.JNZ(operand.LabelRef("block"))
	t.VZEROUPPER()
	t.RET()
}

// halves loads 16 bytes of row i into the low half of a vector and of row i+apart into the high half.
func (t *transpose) halves(from, stride reg.Register, apart, disp int) []reg.VecVirtual {
	far := t.GP64()
	t.MOVQ(from, far)
	for range apart {
		t.ADDQ(stride, far)
	}
	near := t.GP64()
	t.MOVQ(from, near)
	var out []reg.VecVirtual
	for range apart {
		v := t.YMM()
		t.VMOVUPS(at(near, disp), v.AsX())
		t.VINSERTF128(operand.Imm(1), at(far, disp), v, v)
		t.ADDQ(stride, near)
		t.ADDQ(stride, far)
		out = append(out, v)
	}
	return out
}

// quads transposes the 4x4 blocks in both halves of four vectors.
func (t *transpose) quads(r []reg.VecVirtual) []reg.VecVirtual {
	lo01, hi01, lo23, hi23 := t.YMM(), t.YMM(), t.YMM(), t.YMM()
	t.VUNPCKLPS(r[1], r[0], lo01) // 00 10 01 11
	t.VUNPCKHPS(r[1], r[0], hi01) // 02 12 03 13
	t.VUNPCKLPS(r[3], r[2], lo23)
	t.VUNPCKHPS(r[3], r[2], hi23)
	out := []reg.VecVirtual{t.YMM(), t.YMM(), t.YMM(), t.YMM()}
	t.VSHUFPS(operand.Imm(0x44), lo23, lo01, out[0])
	t.VSHUFPS(operand.Imm(0xee), lo23, lo01, out[1])
	t.VSHUFPS(operand.Imm(0x44), hi23, hi01, out[2])
	t.VSHUFPS(operand.Imm(0xee), hi23, hi01, out[3])
	return out
}

func (t *transpose) block8x8(dst, width, from, stride reg.Register) {
	for _, disp := range []int{0, 16} {
		for _, v := range t.quads(t.halves(from, stride, 4, disp)) {
			t.VMOVUPS(v, at(dst, 0))
			t.ADDQ(width, dst)
		}
	}
}

// block4x8 holds columns p and p+4 in the two halves.
func (t *transpose) block4x8(dst, width, from, stride reg.Register) {
	var rows []reg.VecVirtual
	for range 4 {
		v := t.YMM()
		t.VMOVUPS(at(from, 0), v)
		t.ADDQ(stride, from)
		rows = append(rows, v)
	}
	out := t.quads(rows)
	for _, v := range out {
		t.VMOVUPS(v.AsX(), at(dst, 0))
		t.ADDQ(width, dst)
	}
	for _, v := range out {
		t.VEXTRACTF128(operand.Imm(1), v, at(dst, 0))
		t.ADDQ(width, dst)
	}
}

func (t *transpose) block4x4(dst, width, from, stride reg.Register) {
	for _, disp := range []int{0, 16} {
		r := t.halves(from, stride, 2, disp) // rows 0|2, 1|3
		for _, unpack := range []func(...op){t.VUNPCKLPD, t.VUNPCKHPD} {
			v := t.YMM()
			unpack(r[1], r[0], v) // 0 1 | 2 3
			t.VMOVUPD(v, at(dst, 0))
			t.ADDQ(width, dst)
		}
	}
}
