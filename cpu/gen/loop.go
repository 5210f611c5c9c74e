package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loop writes a kernel that does the same to every element of its rows: whole vectors first, then a masked rest. The
// same instructions compute every element, so no bit depends on where an element stands.
type loop struct {
	emitter
	table   *table
	ptrs    map[string]reg.Register
	scalars map[string]reg.VecVirtual
	off     reg.Register
	mask    reg.Register // in the rest: an opmask, or a vector
	rest    bool
	sums    []reg.VecVirtual
}

// table holds vectors of constants, each once a file.
type table struct {
	ctx  *build.Context
	mems map[uint32]operand.Mem
	ones operand.Mem // eight elements of ones, then eight of zeros
}

func newTable(ctx *build.Context) *table {
	t := &table{ctx: ctx, mems: map[uint32]operand.Mem{}}
	t.ones = ctx.StaticGlobal("vectorOnes")
	ctx.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		v := uint32(0)
		if i < 8 {
			v = ^v
		}
		ctx.AddDatum(4*i, operand.U32(v))
	}
	return t
}

// bits is a vector of 32-bit values, as wide as the widest register.
func (t *table) bits(v uint32) operand.Mem {
	if m, ok := t.mems[v]; ok {
		return m
	}
	m := t.ctx.StaticGlobal(fmt.Sprintf("vector%08x", v))
	t.ctx.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		t.ctx.AddDatum(4*i, operand.U32(v))
	}
	t.mems[v] = m
	return m
}

// num is a vector of one number.
func (l *loop) num(x float64) operand.Mem { return l.table.bits(math.Float32bits(float32(x))) }

// spec says what a kernel's arguments are. The signature is func(ptrs... *float32, n int, scalars... float32), with
// a float32 result for each sum.
type spec struct {
	name, doc     string
	ptrs, scalars []string
	numbers       string // a pointer to int32 in place of float32
	word          string // a further scalar, an int32
	sums          int
	largest       bool // the one "sum" is a maximum
	body          func(l *loop)
}

func (s spec) signature() string {
	text := "func("
	for _, p := range s.ptrs {
		kind := " *float32, "
		if p == s.numbers {
			kind = " *int32, "
		}
		text += p + kind
	}
	text += "n int"
	for _, x := range s.scalars {
		text += ", " + x + " float32"
	}
	if s.word != "" {
		text += ", " + s.word + " int32"
	}
	text += ")"
	switch s.sums {
	case 0:
		return text
	case 1:
		return text + " float32"
	}
	return text + " (sum0, sum1 float32)"
}

func (s spec) write(ctx *build.Context, t *table, wide bool) {
	l := &loop{emitter: emitter{ctx, f32, wide}, table: t, ptrs: map[string]reg.Register{}, scalars: map[string]reg.VecVirtual{}}
	name := s.name + l.isa()
	l.Function(name)
	l.Attributes(attr.NOSPLIT)
	l.Pragma("noescape")
	l.SignatureExpr(s.signature())
	l.Doc(name + ": " + s.doc)
	for _, p := range s.ptrs {
		l.ptrs[p] = l.arg(p)
	}
	n := l.arg("n")
	for _, x := range s.scalars {
		v := l.vec()
		addr, err := l.Param(x).Resolve()
		if err != nil {
			panic(err)
		}
		l.broadcast(addr.Addr, v)
		l.scalars[x] = v
	}
	if s.word != "" {
		v := l.vec()
		l.VMOVD(l.Load(l.Param(s.word), l.GP32()), v.AsX())
		l.VPBROADCASTD(v.AsX(), v)
		l.scalars[s.word] = v
	}
	for range s.sums {
		v := l.vec()
		if s.largest {
			l.mov(l.num(math.Inf(-1)), v)
		} else {
			l.zero(v)
		}
		l.sums = append(l.sums, v)
	}
	l.off = l.GP64()
	l.XORQ(l.off, l.off)
	l.run(n, s.body)
	for i, v := range l.sums {
		l.fold(v, s.largest)
		l.Store(v.AsX(), l.ReturnIndex(i))
	}
	l.VZEROUPPER()
	l.RET()
}

func (l *loop) run(n reg.Register, body func(*loop)) {
	l.CMPQ(n, operand.Imm(uint64(l.lanes())))
	l.JLT(operand.LabelRef("rest"))
	l.Label("loop")
	body(l)
	l.ADDQ(operand.Imm(uint64(l.bytes())), l.off)
	l.SUBQ(operand.Imm(uint64(l.lanes())), n)
	l.CMPQ(n, operand.Imm(uint64(l.lanes())))
	l.JGE(operand.LabelRef("loop"))
	l.Label("rest")
	l.TESTQ(n, n)
	l.JZ(operand.LabelRef("end"))
	l.rest = true
	l.mask = l.restMask(n)
	body(l)
	l.Label("end")
}

func (l *loop) restMask(n reg.Register) reg.Register {
	if l.wide {
		bits, all := l.GP64(), l.GP64()
		l.MOVQ(operand.I64(-1), all)
		l.BZHIQ(n, all, bits)
		k := l.K()
		l.KMOVW(bits.As32(), k)
		return k
	}
	base, index := l.GP64(), l.GP64()
	l.LEAQ(l.table.ones, base)
	l.MOVQ(operand.I32(8), index)
	l.SUBQ(n, index)
	m := l.vec()
	l.VMOVUPS(operand.Mem{Base: base, Index: index, Scale: 4}, m)
	return m
}

func (l *loop) at(p string) operand.Mem {
	return operand.Mem{Base: l.ptrs[p], Index: l.off, Scale: 1}
}

// load reads the present elements of a row; those beyond its end are 0.
func (l *loop) load(p string) reg.VecVirtual {
	v := l.vec()
	switch {
	case !l.rest:
		l.mov(l.at(p), v)
	case l.wide:
		l.VMOVUPS_Z(l.at(p), l.mask, v)
	default:
		l.VMASKMOVPS(l.at(p), l.mask, v)
	}
	return v
}

func (l *loop) store(p string, v reg.VecVirtual) {
	switch {
	case !l.rest:
		l.mov(v, l.at(p))
	case l.wide:
		l.VMOVUPS(v, l.mask, l.at(p))
	default:
		l.VMASKMOVPS(v, l.mask, l.at(p))
	}
}

// blind sets x to -Inf where two vectors of int32 differ.
func (l *loop) blind(x, numbers, own reg.VecVirtual) {
	low := l.constant(math.Inf(-1))
	if l.wide {
		k := l.K()
		l.VPCMPD(operand.Imm(4), own, numbers, k) // not equal
		l.VMOVAPS(low, k, x)
		return
	}
	l.VPCMPEQD(own, numbers, numbers)
	l.VBLENDVPS(numbers, x, low, x)
}

// sum adds v to sum i, leaving out what is beyond the end.
func (l *loop) sum(i int, v reg.VecVirtual) {
	acc := l.sums[i]
	switch {
	case !l.rest:
		l.VADDPS(v, acc, acc)
	case l.wide:
		l.VADDPS(v, acc, l.mask, acc)
	default:
		l.VANDPS(l.mask, v, v)
		l.VADDPS(v, acc, acc)
	}
}

// largest keeps the larger of v and maximum 0. A NaN stays.
func (l *loop) largest(v reg.VecVirtual) {
	acc := l.sums[0]
	if l.rest {
		low := l.vec()
		l.mov(l.num(math.Inf(-1)), low)
		if l.wide {
			l.VMOVAPS(v, l.mask, low)
		} else {
			l.VBLENDVPS(l.mask, v, low, low)
		}
		v = low
	}
	l.VMAXPS(acc, v, acc) // where either is NaN the result is acc
}

// fold leaves the sum (or maximum) of all lanes in lane 0.
func (l *loop) fold(v reg.VecVirtual, largest bool) {
	join := func(x, y, dst op) {
		if largest {
			l.VMAXPS(x, y, dst)
			return
		}
		l.VADDPS(x, y, dst)
	}
	if l.wide {
		high := l.YMM()
		l.VEXTRACTF32X8(operand.Imm(1), v, high)
		join(high, v.AsY(), v.AsY())
	}
	high, x := l.XMM(), v.AsX()
	l.VEXTRACTF128(operand.Imm(1), v.AsY(), high)
	join(high, x, x)
	l.VMOVHLPS(x, x, high)
	join(high, x, x)
	l.VMOVSHDUP(x, high)
	join(high, x, x)
}

// The next few are arithmetic with a new result. x is a register, y a register or memory.

func (l *loop) mul(x reg.VecVirtual, y op) reg.VecVirtual { v := l.vec(); l.VMULPS(y, x, v); return v }
func (l *loop) sub(x reg.VecVirtual, y op) reg.VecVirtual { v := l.vec(); l.VSUBPS(y, x, v); return v }
func (l *loop) plus(x reg.VecVirtual, y op) reg.VecVirtual {
	v := l.vec()
	l.VADDPS(y, x, v)
	return v
}
func (l *loop) div(x reg.VecVirtual, y op) reg.VecVirtual { v := l.vec(); l.VDIVPS(y, x, v); return v }

// muladd is x*y + z, into z.
func (l *loop) muladd(x reg.VecVirtual, y op, z reg.VecVirtual) { l.VFMADD231PS(y, x, z) }

func (l *loop) constant(x float64) reg.VecVirtual {
	v := l.vec()
	l.mov(l.num(x), v)
	return v
}
