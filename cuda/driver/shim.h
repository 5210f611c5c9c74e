// Prototypes of the few functions used, and tables of them as found in libraries opened at run time.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define TX_DRIVER(F)                                                                                                                   \
  F(cuInit, (unsigned))                                                                                                                \
  F(cuDriverGetVersion, (int*))                                                                                                        \
  F(cuDeviceGetCount, (int*))                                                                                                          \
  F(cuDeviceGet, (int*, int))                                                                                                          \
  F(cuDeviceGetName, (char*, int, int))                                                                                                \
  F(cuDeviceTotalMem_v2, (size_t*, int))                                                                                               \
  F(cuDeviceGetAttribute, (int*, int, int))                                                                                            \
  F(cuDevicePrimaryCtxRetain, (void**, int))                                                                                           \
  F(cuDevicePrimaryCtxRelease_v2, (int))                                                                                               \
  F(cuCtxSetCurrent, (void*))                                                                                                          \
  F(cuStreamCreate, (void**, unsigned))                                                                                                \
  F(cuStreamSynchronize, (void*))                                                                                                      \
  F(cuStreamDestroy_v2, (void*))                                                                                                       \
  F(cuMemGetInfo_v2, (size_t*, size_t*))                                                                                               \
  F(cuMemAlloc_v2, (uint64_t*, size_t))                                                                                                \
  F(cuMemFree_v2, (uint64_t))                                                                                                          \
  F(cuMemHostAlloc, (void**, size_t, unsigned))                                                                                        \
  F(cuMemFreeHost, (void*))                                                                                                            \
  F(cuMemcpyHtoDAsync_v2, (uint64_t, const void*, size_t, void*))                                                                      \
  F(cuMemcpyDtoHAsync_v2, (void*, uint64_t, size_t, void*))                                                                            \
  F(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void*))                                                                         \
  F(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void*))                                                                         \
  F(cuModuleLoadData, (void**, const void*))                                                                                           \
  F(cuModuleUnload, (void*))                                                                                                           \
  F(cuModuleGetFunction, (void**, void*, const char*))                                                                                 \
  F(cuFuncSetAttribute, (void*, int, int))                                                                                             \
  F(cuFuncGetAttribute, (int*, int, void*))                                                                                            \
  F(cuLaunchKernel, (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**))               \
  F(cuEventCreate, (void**, unsigned))                                                                                                 \
  F(cuEventRecord, (void*, void*))                                                                                                     \
  F(cuEventSynchronize, (void*))                                                                                                       \
  F(cuEventQuery, (void*))                                                                                                             \
  F(cuStreamWaitEvent, (void*, void*, unsigned))                                                                                       \
  F(cuEventDestroy_v2, (void*))                                                                                                        \
  F(cuGetErrorName, (int, const char**))                                                                                               \
  F(cuGetErrorString, (int, const char**))

#define TX_COMPILER(F)                                                                                                                 \
  F(nvrtcVersion, (int*, int*))                                                                                                        \
  F(nvrtcCreateProgram, (void**, const char*, const char*, int, const char* const*, const char* const*))                               \
  F(nvrtcDestroyProgram, (void**))                                                                                                     \
  F(nvrtcCompileProgram, (void*, int, const char* const*))                                                                             \
  F(nvrtcGetCUBINSize, (void*, size_t*))                                                                                               \
  F(nvrtcGetCUBIN, (void*, char*))                                                                                                     \
  F(nvrtcGetProgramLogSize, (void*, size_t*))                                                                                          \
  F(nvrtcGetProgramLog, (void*, char*))

#define TX_BLAS(F)                                                                                                                     \
  F(cublasLtCreate, (void**))                                                                                                          \
  F(cublasLtDestroy, (void*))                                                                                                          \
  F(cublasLtMatmulDescCreate, (void**, int, int))                                                                                      \
  F(cublasLtMatmulDescSetAttribute, (void*, int, const void*, size_t))                                                                 \
  F(cublasLtMatmulDescDestroy, (void*))                                                                                                \
  F(cublasLtMatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                                                            \
  F(cublasLtMatrixLayoutDestroy, (void*))                                                                                              \
  F(cublasLtMatmulPreferenceCreate, (void**))                                                                                          \
  F(cublasLtMatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                                                           \
  F(cublasLtMatmulPreferenceDestroy, (void*))                                                                                          \
  F(cublasLtMatmulAlgoGetHeuristic, (void*, void*, void*, void*, void*, void*, void*, int, void*, int*))                               \
  F(cublasLtMatmul, (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, const void*, void*, size_t, void*))

#define TX_FIELD(name, args) int(*name) args;

typedef struct {
  TX_DRIVER(TX_FIELD)
} tx_driver;

typedef struct {
  TX_COMPILER(TX_FIELD)
  const char* (*nvrtcGetErrorString)(int);
} tx_compiler;

typedef struct {
  TX_BLAS(TX_FIELD)
  size_t (*cublasLtGetVersion)(void);
  const char* (*cublasLtGetStatusString)(int);  // since 11.4
} tx_blas;

// Each opens a library and fills a table; null leaves the reason in why. Libraries are never closed: their threads outlive any use.
tx_driver* tx_open_driver(const char* path, char* why, int n);
tx_compiler* tx_open_compiler(const char* path, char* why, int n);
tx_blas* tx_open_blas(const char* path, char* why, int n);

int tx_launch(tx_driver* d, void* c, void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void* args,
              size_t size);

// tx_plan is a product of column-major matrices, described and tuned once and run often.
typedef struct {
  void *op, *a, *b, *c;
  uint64_t algo[8];
  size_t workspace;
} tx_plan;

typedef struct {
  int type, out, trans_a, trans_b;  // cudaDataType of a and b, and of c
  uint64_t m, n, k;                 // c [m n] = op(a) [m k] op(b) [k n]
  uint32_t align[4];                // of a, b, c and the result, in bytes
  uint64_t workspace;
} tx_shape;

// tx_make_plan names the call that failed.
int tx_make_plan(tx_blas* l, void* handle, const tx_shape* s, tx_plan* p, const char** call);
int tx_run_plan(tx_blas* l, void* handle, tx_plan* p, uint64_t a, uint64_t b, uint64_t c, float beta, uint64_t workspace, void* stream);
void tx_free_plan(tx_blas* l, tx_plan* p);
