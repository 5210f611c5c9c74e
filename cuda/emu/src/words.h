// The words that CUDA adds to C++, for kernels compiled for the CPU. Put in front of a kernel's source with -include.
#pragma once
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <tuple>

#include "runtime.h"

#define EMULATED
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
