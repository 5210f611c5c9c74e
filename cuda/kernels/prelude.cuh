// What all kernels share: types, conversions, reductions. The text is put in front of every .cu file; nothing is included.
//
// A file is written for one storage type, `real`, and compiled once for each: float, or bf16 with STORE_BF16. Arithmetic is in
// float whatever the storage. The CPU emulator compiles the same text with its own words for what CUDA adds to C++.

typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#ifndef EMULATED
#define KERNEL(name) extern "C" __global__ void name
#define DEVICE static __device__ __forceinline__
#define SHARED(type, name, n) __shared__ type name[n]
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#endif

#define FULL_WARP 0xffffffffu
#define INFINITE __int_as_float(0x7f800000)

struct bf16 {
  unsigned short bits;
};

#ifdef STORE_BF16
typedef bf16 real;
#else
typedef float real;
#endif

// stat is the type of what sums are kept in, whatever the storage: means, reciprocal deviations, log-sum-exps, maxima, factors of rows,
// gradients of weights.
typedef float stat;

DEVICE float get(const float* p, i64 i) { return p[i]; }
DEVICE float get(const bf16* p, i64 i) { return __uint_as_float((u32)p[i].bits << 16); }
DEVICE void put(float* p, i64 i, float v) { p[i] = v; }

// bf16_of rounds to nearest even; what is NaN stays NaN.
DEVICE bf16 bf16_of(float v) {
  u32 b = __float_as_uint(v);
  bf16 r;
  r.bits = v != v ? (unsigned short)0x7fc0 : (unsigned short)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
  return r;
}

DEVICE void put(bf16* p, i64 i, float v) { p[i] = bf16_of(v); }

// four is 16 bytes moved at once.
struct __align__(16) four {
  u32 x, y, z, w;
};

// pair rounds two numbers into one word, the first in the lower half.
DEVICE u32 pair(float lo, float hi) { return (u32)bf16_of(lo).bits | (u32)bf16_of(hi).bits << 16; }

// multiply adds a product of 16 x 16 by 16 x 8 to c, on a warp's tensor cores. load_columns gives each lane its part of a right operand of 16 rows of 8 elements in
// shared memory, whose addresses lanes 0 to 15 name.
#ifndef EMULATED
DEVICE void multiply(float* c, const u32* a, const u32* b) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

DEVICE void load_columns(u32* b, const bf16* row) {
#if __CUDA_ARCH__ >= 800
  u32 at;
  asm("{ .reg .u64 p; cvta.to.shared.u64 p, %1; cvt.u32.u64 %0, p; }" : "=r"(at) : "l"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at) : "memory");
#endif
}
#endif

// first_thread and all_threads walk a flat array by grid-sized strides.
DEVICE i64 first_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE i64 all_threads() { return (i64)gridDim.x * blockDim.x; }

// Sums and maxima over a warp: every lane gets the result, the same bits.
DEVICE float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(FULL_WARP, v, d);
  return v;
}

DEVICE float warp_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(FULL_WARP, v, d));
  return v;
}

DEVICE double warp_sum(double v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(FULL_WARP, v, d);
  return v;
}

// The same over a block of up to 1024 threads, a multiple of 32; lane is threadIdx.x % 32. Two barriers: the second lets the
// next call write again.
DEVICE float block_sum(float v) {
  SHARED(float, sums, 32);
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0;
  __syncthreads();
  return warp_sum(v);
}

DEVICE float block_max(float v) {
  SHARED(float, tops, 32);
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? tops[threadIdx.x % 32] : -INFINITE;
  __syncthreads();
  return warp_max(v);
}

DEVICE double block_sum(double v) {
  SHARED(double, wide_sums, 32);
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) wide_sums[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? wide_sums[threadIdx.x % 32] : 0;
  __syncthreads();
  return warp_sum(v);
}

// kept says whether the element at the given state of the counter-based stream stays: SplitMix64's mix (Steele, Lea & Flood
// 2014, fig. 15) against the limit.
DEVICE bool kept(u64 state, u64 limit) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebull;
  return (state ^ (state >> 31)) >= limit;
}

#define STREAM_STEP 0x9e3779b97f4a7c15ull
