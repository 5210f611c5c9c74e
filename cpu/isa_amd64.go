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
	k := &kernels[float32]{
		name: string(isa), unit: 4,
		transposes: []transposeOf[float32]{{8, 8, transpose8x8F32}, {4, 8, transpose4x8F32}},
		copyRows: func(dst, src *float32, stride, rows, elements int) {
			packRows16((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(src)), 4*stride, rows, elements/4)
		},
	}
	switch isa {
	case AVX512:
		k.rows = 8
		k.tiles = []tileOf[float32]{{48, tile8x48AVX512F32}, {32, tile8x32AVX512F32}, {16, tile8x16AVX512F32}}
	case AVX2:
		k.rows = 4
		k.tiles = []tileOf[float32]{{24, tile4x24AVX2F32}, {16, tile4x16AVX2F32}, {8, tile4x8AVX2F32}}
	default:
		return nil
	}
	return k
}

func tilingF64(isa ISA) *kernels[float64] {
	k := &kernels[float64]{
		name: string(isa), unit: 2,
		transposes: []transposeOf[float64]{{4, 4, transpose4x4F64}},
		copyRows: func(dst, src *float64, stride, rows, elements int) {
			packRows16((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(src)), 8*stride, rows, elements/2)
		},
	}
	switch isa {
	case AVX512:
		k.rows = 8
		k.tiles = []tileOf[float64]{{24, tile8x24AVX512F64}, {16, tile8x16AVX512F64}, {8, tile8x8AVX512F64}}
	case AVX2:
		k.rows = 4
		k.tiles = []tileOf[float64]{{12, tile4x12AVX2F64}, {8, tile4x8AVX2F64}, {4, tile4x4AVX2F64}}
	default:
		return nil
	}
	return k
}
