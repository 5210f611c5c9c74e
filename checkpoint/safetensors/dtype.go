package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType is a type of elements by the format's name for it.
type DType string

// The types whose elements Values and Put know. Others can be read as bytes.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
)

var sizes = map[DType]int{
	F64: 8, F32: 4, F16: 2, BF16: 2, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}

// Size is the bytes of an element; 0 for a type that is not known here.
func (d DType) Size() int { return sizes[d] }

// Float says whether Values and Put know the type.
func (d DType) Float() bool { return d == F64 || d == F32 || d == F16 || d == BF16 }

// Values decodes len(dst) elements.
func (d DType) Values(dst []float64, raw []byte) {
	le := binary.LittleEndian
	switch d {
	case F64:
		for i := range dst {
			dst[i] = math.Float64frombits(le.Uint64(raw[8*i:]))
		}
	case F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(le.Uint32(raw[4*i:])))
		}
	case BF16:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(le.Uint16(raw[2*i:])) << 16))
		}
	case F16:
		for i := range dst {
			dst[i] = half(le.Uint16(raw[2*i:]))
		}
	default:
		panic(fmt.Sprintf("safetensors: values of %s", d))
	}
}

// Put encodes elements, rounded to the nearest, ties to even.
func (d DType) Put(raw []byte, src []float64) {
	le := binary.LittleEndian
	switch d {
	case F64:
		for i, x := range src {
			le.PutUint64(raw[8*i:], math.Float64bits(x))
		}
	case F32:
		for i, x := range src {
			le.PutUint32(raw[4*i:], math.Float32bits(float32(x)))
		}
	case BF16:
		for i, x := range src {
			le.PutUint16(raw[2*i:], bfloat(x))
		}
	case F16:
		for i, x := range src {
			le.PutUint16(raw[2*i:], toHalf(x))
		}
	default:
		panic(fmt.Sprintf("safetensors: values of %s", d))
	}
}

// bfloat keeps the upper half of a float32. A float64 is rounded once: what float32 would round away first is kept as a sticky bit.
func bfloat(x float64) uint16 {
	if x != x {
		return 0x7fc0
	}
	f := float32(x)
	b := math.Float32bits(f)
	if r := float64(f); r != x && !math.IsInf(r, 0) && b&0xffff == 0x8000 { // a tie that is none
		if (math.Abs(x) < math.Abs(r)) == (x != 0) {
			b--
		} else {
			b++
		}
	}
	b += 0x7fff + b>>16&1
	return uint16(b >> 16)
}

// half is the value of an IEEE 754 binary16.
func half(h uint16) float64 {
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// toHalf rounds to binary16.
func toHalf(x float64) uint16 {
	sign := uint16(0)
	if math.Signbit(x) {
		sign = 0x8000
	}
	a := math.Abs(x)
	switch {
	case x != x:
		return 0x7e00
	case a >= 65520: // halfway beyond the largest
		return sign | 0x7c00
	case a < math.Ldexp(1, -14): // subnormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(math.Ldexp(a, 24)))
	}
	m, e := math.Frexp(a) // a = m 2^e, m in [1/2, 1)
	n := uint16(math.RoundToEven(math.Ldexp(m, 11)))
	return sign | (uint16(e+13)<<10 + n) // a carry of n moves into the exponent
}
