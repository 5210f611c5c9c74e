//go:build cgo && linux

#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* open_library(const char* path, char* why, int n) {
  void* lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!lib) snprintf(why, n, "%s", dlerror());
  return lib;
}

static int take(void* lib, const char* name, void** to, char* why, int n) {
  *to = dlsym(lib, name);
  if (*to) return 1;
  snprintf(why, n, "it has no %s", name);
  return 0;
}

#define TX_TAKE(name, args) &&take(lib, #name, (void**)&t->name, why, n)

#define TX_OPEN(kind, list, more)                          \
  void* lib = open_library(path, why, n);                  \
  if (!lib) return NULL;                                   \
  kind* t = calloc(1, sizeof *t);                          \
  if (t && (1 list(TX_TAKE) more)) return t;               \
  free(t);                                                 \
  return NULL;

tx_driver* tx_open_driver(const char* path, char* why, int n) { TX_OPEN(tx_driver, TX_DRIVER, ) }

tx_compiler* tx_open_compiler(const char* path, char* why, int n) {
  TX_OPEN(tx_compiler, TX_COMPILER, TX_TAKE(nvrtcGetErrorString, ))
}

tx_blas* tx_open_blas(const char* path, char* why, int n) {
  TX_OPEN(tx_blas, TX_BLAS, TX_TAKE(cublasLtGetVersion, ) TX_TAKE(cublasLtGetStatusString, ))
}

// The arguments go as one block (CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END).
int tx_launch(tx_driver* d, void* c, void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void* args,
              size_t size) {
  void* extra[] = {(void*)1, args, (void*)2, &size, NULL};
  int r = d->cuCtxSetCurrent(c);
  return r ? r : d->cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, NULL, extra);
}

// cuBLASLt's numbers: CUBLAS_COMPUTE_32F, CUDA_R_32F; attributes of a product, of a preference.
enum { compute_32f = 68, type_32f = 0, desc_trans_a = 3, desc_trans_b = 4, pref_workspace = 1, pref_schemes = 3, pref_align_a = 5 };

// Sums across blocks may go through the workspace, in a fixed order, and not by additions in place in any order: the same bits every time.
static const uint32_t ordered_schemes = 2 | 4;

int tx_make_plan(tx_blas* l, void* handle, const tx_shape* s, tx_plan* p, const char** call) {
  struct {
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  } best;
  void* pref = NULL;
  int r, found = 0, ta = s->trans_a, tb = s->trans_b;
  memset(p, 0, sizeof *p);
#define TX_TRY(name, args) \
  if ((*call = #name, r = l->name args)) goto end
  TX_TRY(cublasLtMatmulDescCreate, (&p->op, compute_32f, type_32f));
  TX_TRY(cublasLtMatmulDescSetAttribute, (p->op, desc_trans_a, &ta, sizeof ta));
  TX_TRY(cublasLtMatmulDescSetAttribute, (p->op, desc_trans_b, &tb, sizeof tb));
  TX_TRY(cublasLtMatrixLayoutCreate, (&p->a, s->type, ta ? s->k : s->m, ta ? s->m : s->k, ta ? s->k : s->m));
  TX_TRY(cublasLtMatrixLayoutCreate, (&p->b, s->type, tb ? s->n : s->k, tb ? s->k : s->n, tb ? s->n : s->k));
  TX_TRY(cublasLtMatrixLayoutCreate, (&p->c, s->out, s->m, s->n, s->m));
  TX_TRY(cublasLtMatmulPreferenceCreate, (&pref));
  TX_TRY(cublasLtMatmulPreferenceSetAttribute, (pref, pref_workspace, &s->workspace, sizeof s->workspace));
  TX_TRY(cublasLtMatmulPreferenceSetAttribute, (pref, pref_schemes, &ordered_schemes, sizeof ordered_schemes));
  for (int i = 0; i < 4; i++) TX_TRY(cublasLtMatmulPreferenceSetAttribute, (pref, pref_align_a + i, &s->align[i], sizeof s->align[i]));
  TX_TRY(cublasLtMatmulAlgoGetHeuristic, (handle, p->op, p->a, p->b, p->c, p->c, pref, 1, &best, &found));
  if (found < 1) {
    r = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
    goto end;
  }
  memcpy(p->algo, best.algo, sizeof p->algo);
  p->workspace = best.workspace;
end:
  if (pref) l->cublasLtMatmulPreferenceDestroy(pref);
  if (r) tx_free_plan(l, p);
  return r;
}

int tx_run_plan(tx_blas* l, void* handle, tx_plan* p, uint64_t a, uint64_t b, uint64_t c, float beta, uint64_t workspace, void* stream) {
  float one = 1;
  return l->cublasLtMatmul(handle, p->op, &one, (void*)a, p->a, (void*)b, p->b, &beta, (void*)c, p->c, (void*)c, p->c, p->algo, (void*)workspace, p->workspace, stream);
}

void tx_free_plan(tx_blas* l, tx_plan* p) {
  if (p->op) l->cublasLtMatmulDescDestroy(p->op);
  if (p->a) l->cublasLtMatrixLayoutDestroy(p->a);
  if (p->b) l->cublasLtMatrixLayoutDestroy(p->b);
  if (p->c) l->cublasLtMatrixLayoutDestroy(p->c);
  memset(p, 0, sizeof *p);
}
