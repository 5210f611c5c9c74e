package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elem is an element type and the instruction forms that go with it.
type elem struct {
	goType string
	suffix string // of function names
	size   int
}

var (
	f32 = elem{"float32", "F32", 4}
	f64 = elem{"float64", "F64", 8}
)

// emitter writes instructions for one element type and vector width.
type emitter struct {
	*build.Context
	elem
	wide bool // 64-byte vectors of AVX-512; else the 32-byte ones of AVX2
}

func (e *emitter) bytes() int {
	if e.wide {
		return 64
	}
	return 32
}

func (e *emitter) lanes() int { return e.bytes() / e.size }

func (e *emitter) isa() string {
	if e.wide {
		return "AVX512"
	}
	return "AVX2"
}

func (e *emitter) vec() reg.VecVirtual {
	if e.wide {
		return e.ZMM()
	}
	return e.YMM()
}

type op = operand.Op

// one picks the instruction for the element type.
func (e *emitter) one(single, double func(...op), ops ...op) {
	if e.size == 8 {
		double(ops...)
		return
	}
	single(ops...)
}

func (e *emitter) fma(x, y, acc op)  { e.one(e.VFMADD231PS, e.VFMADD231PD, x, y, acc) }
func (e *emitter) add(ops ...op)     { e.one(e.VADDPS, e.VADDPD, ops...) }
func (e *emitter) mov(ops ...op)     { e.one(e.VMOVUPS, e.VMOVUPD, ops...) }
func (e *emitter) broadcast(m, v op) { e.one(e.VBROADCASTSS, e.VBROADCASTSD, m, v) }
func (e *emitter) zero(v reg.Register) {
	if e.wide {
		e.VPXORD(v, v, v)
		return
	}
	e.VXORPS(v, v, v)
}

func (e *emitter) arg(name string) reg.Register { return e.Load(e.Param(name), e.GP64()) }

// at is memory at base plus a number of bytes.
func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }
