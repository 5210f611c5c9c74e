// The words that CUDA adds to C++, for kernels compiled for the CPU. Put in front of a kernel's source with -include.
#pragma once
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <tuple>

#include "runtime.h"

#define EMULATED
#define __align__(n) alignas(n)
#define KERNEL(name) static void name
#define DEVICE static inline
#define SHARED(type, name, n) type* name = (type*)emu_run->shared(__COUNTER__, sizeof(type) * (n))
#define DYNAMIC_SHARED(type, name) type* name = (type*)emu_run->dynamic()

static const emu_runtime* emu_run;
extern "C" void emu_attach(const emu_runtime* run) { emu_run = run; }

#define threadIdx (emu_run->self()->thread)
#define blockIdx (emu_run->self()->block)
#define blockDim (emu_run->self()->block_dim)
#define gridDim (emu_run->self()->grid_dim)

static inline void __syncthreads() { emu_run->block_barrier(); }
static inline void __syncwarp() { emu_run->warp_barrier(); }

// A shuffle shows the lane's value to its warp, waits for the other lanes, and reads one of theirs.
template <class T>
static inline T __shfl_xor_sync(unsigned, T v, int mask) {
  T out;
  emu_run->shuffle(&v, &out, sizeof(T), mask);
  return out;
}

// A tensor core's product: every lane shows its operands, and adds up its four elements in the order of the manual's tables (PTX, mma.m16n8k16).
struct emu_operands {
  unsigned a[4], b[2];
};

static inline int emu_lane() { return threadIdx.x % 32; }  // blocks that multiply have one dimension

// emu_halves are the 16 numbers of a row or column: words of four lanes, two registers of each.
static inline void emu_halves(float* to, const char* all, int lane, size_t first, size_t second) {
  for (int i = 0; i < 4; i++) {
    const char* own = all + (lane + i) * emu_slot;
    unsigned w[2];
    memcpy(&w[0], own + first, 4);
    memcpy(&w[1], own + second, 4);
    for (int r = 0; r < 2; r++) {
      unsigned lo = w[r] << 16, hi = w[r] & 0xffff0000u;
      memcpy(&to[r * 8 + 2 * i], &lo, 4);
      memcpy(&to[r * 8 + 2 * i + 1], &hi, 4);
    }
  }
}

static inline void multiply(float* c, const unsigned* a, const unsigned* b) {
  emu_operands own;
  memcpy(own.a, a, 16);
  memcpy(own.b, b, 8);
  const char* all = emu_run->gather(&own, sizeof own);
  int g = emu_lane() / 4, t = emu_lane() % 4;
  float row[2][16], col[2][16];
  for (int i = 0; i < 2; i++) {
    emu_halves(row[i], all, g * 4, offsetof(emu_operands, a) + 4 * i, offsetof(emu_operands, a) + 4 * (i + 2));
    emu_halves(col[i], all, (2 * t + i) * 4, offsetof(emu_operands, b), offsetof(emu_operands, b) + 4);
  }
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 16; k++) c[i] += row[i / 2][k] * col[i % 2][k];
}

// load_columns is ldmatrix.x2.trans: lane 4 g + t gets rows 2t and 2t + 1 of column g, of either 8 x 8 matrix. Rows are aligned to 16 bytes.
template <class T>
static inline void load_columns(unsigned* b, const T* row) {
  const char* all = emu_run->gather(&row, sizeof row);
  int g = emu_lane() / 4, t = emu_lane() % 4;
  for (int m = 0; m < 2; m++) {
    unsigned short x[2];
    for (int i = 0; i < 2; i++) {
      const T* from;
      memcpy(&from, all + (m * 8 + 2 * t + i) * emu_slot, sizeof from);
      if ((size_t)from % 16) __builtin_trap();
      memcpy(&x[i], from + g, 2);
    }
    b[m] = x[0] | (unsigned)x[1] << 16;
  }
}

static inline float __int_as_float(int v) { float f; memcpy(&f, &v, 4); return f; }
static inline float __uint_as_float(unsigned v) { float f; memcpy(&f, &v, 4); return f; }
static inline unsigned __float_as_uint(float v) { unsigned u; memcpy(&u, &v, 4); return u; }

// emu_kernel<F> takes a kernel's arguments out of a block packed as the driver wants it: each aligned to its own alignment.
template <auto F>
struct emu_kernel;

template <class... A, void (*F)(A...)>
struct emu_kernel<F> {
  static size_t size() {
    size_t at = 0;
    ((at = (at + alignof(A) - 1) / alignof(A) * alignof(A) + sizeof(A)), ...);
    return at;
  }
  template <class T>
  static T take(const char* args, size_t* at) {
    *at = (*at + alignof(T) - 1) / alignof(T) * alignof(T);
    T v;
    memcpy(&v, args + *at, sizeof(T));
    *at += sizeof(T);
    return v;
  }
  static void call(const char* args) {
    size_t at = 0;
    std::tuple<A...> all{take<A>(args, &at)...};
    std::apply(F, all);
  }
};

#define EMU_EXPORT(name) extern "C" const emu_entry emu_entry_##name; const emu_entry emu_entry_##name = {emu_kernel<&name>::size(), &emu_kernel<&name>::call};
