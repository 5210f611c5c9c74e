#include "textflag.h"

// Four vectors a round: the sum of all sources in their order, to every destination. A round asks for what comes 1 KiB later in each
// source: rows of several ranks are more streams than the processor foresees.
#define SUM(load, sum, shift) \
	MOVQ dst+0(FP), DI; \
	MOVQ src+8(FP), SI; \
	MOVQ dsts+16(FP), R13; \
	MOVQ srcs+24(FP), DX; \
	MOVQ n+32(FP), CX; \
	SHLQ shift, CX; \
	XORQ AX, AX; \
round: \
	MOVQ (SI), R8; \
	load (R8)(AX*1), Y0; \
	load 32(R8)(AX*1), Y1; \
	load 64(R8)(AX*1), Y2; \
	load 96(R8)(AX*1), Y3; \
	PREFETCHT0 1024(R8)(AX*1); \
	PREFETCHT0 1088(R8)(AX*1); \
	MOVQ $1, R9; \
source: \
	MOVQ (SI)(R9*8), R8; \
	sum (R8)(AX*1), Y0, Y0; \
	sum 32(R8)(AX*1), Y1, Y1; \
	sum 64(R8)(AX*1), Y2, Y2; \
	sum 96(R8)(AX*1), Y3, Y3; \
	PREFETCHT0 1024(R8)(AX*1); \
	PREFETCHT0 1088(R8)(AX*1); \
	INCQ R9; \
	CMPQ R9, DX; \
	JLT source; \
	XORQ R9, R9; \
store: \
	MOVQ (DI)(R9*8), R8; \
	load Y0, (R8)(AX*1); \
	load Y1, 32(R8)(AX*1); \
	load Y2, 64(R8)(AX*1); \
	load Y3, 96(R8)(AX*1); \
	INCQ R9; \
	CMPQ R9, R13; \
	JLT store; \
	ADDQ $128, AX; \
	CMPQ AX, CX; \
	JLT round; \
	VZEROUPPER; \
	RET

// func sumAVX2F32(dst, src **float32, dsts, srcs, n int)
TEXT ·sumAVX2F32(SB), NOSPLIT, $0-40
	SUM(VMOVUPS, VADDPS, $2)

// func sumAVX2F64(dst, src **float64, dsts, srcs, n int)
TEXT ·sumAVX2F64(SB), NOSPLIT, $0-40
	SUM(VMOVUPD, VADDPD, $3)

#define WIDEN(at, to) \
	VPMOVZXWD at(R8)(AX*1), to; \
	VPSLLD $16, to, to

// Rounds to the nearest even; NaN stays NaN whatever bits are cut off.
#define NARROW(x) \
	VPSRLD $16, x, Y4; \
	VPAND Y8, Y4, Y5; \
	VPADDD Y9, Y5, Y5; \
	VPADDD x, Y5, Y5; \
	VPSRLD $16, Y5, Y5; \
	VCMPPS $3, x, x, Y6; \
	VPOR Y10, Y4, Y4; \
	VBLENDVPS Y6, Y4, Y5, x

// func sumAVX2BF16(dst, src **uint16, dsts, srcs, n int)
TEXT ·sumAVX2BF16(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dsts+16(FP), R13
	MOVQ srcs+24(FP), DX
	MOVQ n+32(FP), CX
	SHLQ $1, CX
	XORQ AX, AX
	VPCMPEQD Y8, Y8, Y8
	VPSRLD $17, Y8, Y9
	VPSRLD $31, Y8, Y8
	VPSLLD $6, Y8, Y10

round:
	MOVQ (SI), R8
	WIDEN(0, Y0)
	WIDEN(16, Y1)
	WIDEN(32, Y2)
	WIDEN(48, Y3)
	PREFETCHT0 1024(R8)(AX*1)
	MOVQ $1, R9

source:
	MOVQ (SI)(R9*8), R8
	WIDEN(0, Y4)
	WIDEN(16, Y5)
	WIDEN(32, Y6)
	WIDEN(48, Y7)
	VADDPS Y4, Y0, Y0
	VADDPS Y5, Y1, Y1
	VADDPS Y6, Y2, Y2
	VADDPS Y7, Y3, Y3
	PREFETCHT0 1024(R8)(AX*1)
	INCQ R9
	CMPQ R9, DX
	JLT source
	NARROW(Y0)
	NARROW(Y1)
	NARROW(Y2)
	NARROW(Y3)
	VPACKUSDW Y1, Y0, Y0
	VPACKUSDW Y3, Y2, Y2
	VPERMQ $0xd8, Y0, Y0
	VPERMQ $0xd8, Y2, Y2
	XORQ R9, R9

store:
	MOVQ (DI)(R9*8), R8
	VMOVDQU Y0, (R8)(AX*1)
	VMOVDQU Y2, 32(R8)(AX*1)
	INCQ R9
	CMPQ R9, R13
	JLT store
	ADDQ $64, AX
	CMPQ AX, CX
	JLT round
	VZEROUPPER
	RET
