package cpu

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

func vectorISAs() (out []ISA) {
	x := cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasBMI2 && x.HasAVX2 && x.HasFMA {
		out = append(out, AVX512)
	}
	if x.HasAVX2 && x.HasFMA {
		out = append(out, AVX2)
	}
	return out
}

// tiling is the multiplication kernels of an instruction set; nil for plain Go.
func tiling[T float](isa ISA) *kernels[T] {
	var zero T
	if _, ok := any(zero).(float32); ok {
		return any(tilingF32(isa)).(*kernels[T])
	}
	return any(tilingF64(isa)).(*kernels[T])
}

func tilingF32(isa ISA) *kernels[float32] {
	k := &kernels[float32]{name: string(isa), transposes: []transposeOf[float32]{{8, 8, transpose8x8F32}, {4, 8, transpose4x8F32}}}
	switch isa {
	case AVX512:
		k.rows, k.lanes = 8, 16
		k.copyA, k.copyB = copies[float32](packRows32), copies[float32](packRows64)
		k.tiles = []tileOf[float32]{{48, tile8x48AVX512F32}, {32, tile8x32AVX512F32}, {16, tile8x16AVX512F32}}
	case AVX2:
		k.rows, k.lanes = 4, 8
		k.copyA, k.copyB = copies[float32](packRows16), copies[float32](packRows32)
		k.tiles = []tileOf[float32]{{24, tile4x24AVX2F32}, {16, tile4x16AVX2F32}, {8, tile4x8AVX2F32}}
	default:
		return nil
	}
	return k
}

func tilingF64(isa ISA) *kernels[float64] {
	k := &kernels[float64]{name: string(isa), transposes: []transposeOf[float64]{{4, 4, transpose4x4F64}}}
	switch isa {
	case AVX512:
		k.rows, k.lanes = 8, 8
		k.copyA, k.copyB = copies[float64](packRows64), copies[float64](packRows64)
		k.tiles = []tileOf[float64]{{24, tile8x24AVX512F64}, {16, tile8x16AVX512F64}, {8, tile8x8AVX512F64}}
	case AVX2:
		k.rows, k.lanes = 4, 4
		k.copyA, k.copyB = copies[float64](packRows32), copies[float64](packRows32)
		k.tiles = []tileOf[float64]{{12, tile4x12AVX2F64}, {8, tile4x8AVX2F64}, {4, tile4x4AVX2F64}}
	default:
		return nil
	}
	return k
}

// copies is a copy of bytes for elements.
func copies[T float](f func(dst, src *byte, stride, rows, pieces, width, panel int)) copyOf[T] {
	var zero T
	size := int(unsafe.Sizeof(zero))
	return func(dst, src *T, stride, rows, pieces, width, panel int) {
		f((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(src)), stride*size, rows, pieces, width*size, panel*size)
	}
}
