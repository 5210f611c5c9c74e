// A library with cuBLASLt's functions: a plain product of column-major matrices stands in for the real one, which is not ours to
// test. What is tested is what the device asks of it: layouts, transposes, types, and pointers aligned as was promised.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int

enum { success = 0, invalid_value = 7, not_supported = 15 };
enum { f32 = 0, bf16 = 14, compute_f32 = 68 };

struct desc {
  int compute, scale, trans[2];
};

struct layout {
  int type;
  uint64_t rows, cols;
  int64_t ld;
};

struct preference {
  uint64_t workspace;
  uint32_t align[4], schemes;
};

struct algo {  // 64 bytes, as the library's
  uint32_t align[4];
  uint64_t rest[6];
};

struct result {
  algo a;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

API cublasLtCreate(void** h) {
  *h = new int;
  return success;
}

API cublasLtDestroy(void* h) {
  delete (int*)h;
  return success;
}

extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion() { return 120900; }

extern "C" __attribute__((visibility("default"))) const char* cublasLtGetStatusString(int r) {
  return r == success ? "CUBLAS_STATUS_SUCCESS" : r == invalid_value ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_NOT_SUPPORTED";
}

API cublasLtMatmulDescCreate(void** d, int compute, int scale) {
  *d = new desc{compute, scale, {0, 0}};
  return compute == compute_f32 && scale == f32 ? success : not_supported;
}

API cublasLtMatmulDescSetAttribute(void* d, int what, const void* v, size_t n) {
  if ((what != 3 && what != 4) || n != 4) return invalid_value;
  memcpy(&((desc*)d)->trans[what - 3], v, 4);
  return success;
}

API cublasLtMatmulDescDestroy(void* d) {
  delete (desc*)d;
  return success;
}

API cublasLtMatrixLayoutCreate(void** l, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  if ((type != f32 && type != bf16) || rows == 0 || cols == 0 || ld < (int64_t)rows) return invalid_value;
  *l = new layout{type, rows, cols, ld};
  return success;
}

API cublasLtMatrixLayoutDestroy(void* l) {
  delete (layout*)l;
  return success;
}

API cublasLtMatmulPreferenceCreate(void** p) {
  *p = new preference{0, {256, 256, 256, 256}, 7};
  return success;
}

API cublasLtMatmulPreferenceSetAttribute(void* p, int what, const void* v, size_t n) {
  preference* pref = (preference*)p;
  if (what == 1 && n == 8) memcpy(&pref->workspace, v, 8);
  else if (what == 3 && n == 4) memcpy(&pref->schemes, v, 4);
  else if (what >= 5 && what <= 8 && n == 4) memcpy(&pref->align[what - 5], v, 4);
  else return invalid_value;
  return success;
}

API cublasLtMatmulPreferenceDestroy(void* p) {
  delete (preference*)p;
  return success;
}

static bool fit(const desc* d, const layout* a, const layout* b, const layout* c) {
  uint64_t m = d->trans[0] ? a->cols : a->rows, k = d->trans[0] ? a->rows : a->cols;
  uint64_t kb = d->trans[1] ? b->cols : b->rows, n = d->trans[1] ? b->rows : b->cols;
  return k == kb && c->rows == m && c->cols == n && a->type == b->type && (c->type == a->type || c->type == f32);
}

API cublasLtMatmulAlgoGetHeuristic(void*, void* d, void* a, void* b, void* c, void* out, void* p, int asked, void* results, int* found) {
  preference* pref = (preference*)p;
  if (asked < 1 || c != out || !fit((desc*)d, (layout*)a, (layout*)b, (layout*)c)) return invalid_value;
  result r = {};
  memcpy(r.a.align, pref->align, sizeof r.a.align);
  memcpy(results, &r, sizeof r);
  *found = 1;
  return success;
}

static float get(const void* p, int type, size_t i) {
  if (type == f32) return ((const float*)p)[i];
  uint32_t u = (uint32_t)((const uint16_t*)p)[i] << 16;
  float v;
  memcpy(&v, &u, 4);
  return v;
}

static void put(void* p, int type, size_t i, float v) {
  if (type == f32) {
    ((float*)p)[i] = v;
    return;
  }
  uint32_t u;
  memcpy(&u, &v, 4);
  ((uint16_t*)p)[i] = v != v ? 0x7fc0 : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// column copies column j of op(x) out of a column-major matrix.
static void row_of(std::vector<float>& to, const void* x, const layout* l, bool along, uint64_t i, uint64_t k) {
  for (uint64_t p = 0; p < k; p++) to[p] = get(x, l->type, along ? p + i * l->ld : i + p * l->ld);
}

API cublasLtMatmul(void*, void* op, const void* alpha, const void* a, void* la, const void* b, void* lb, const void* beta, const void* c, void* lc, void* out, void* lout, const void* how, void*, size_t, void*) {
  desc* d = (desc*)op;
  layout *A = (layout*)la, *B = (layout*)lb, *C = (layout*)lc;
  if (!fit(d, A, B, C) || lc != lout || c != out || !how) return invalid_value;
  const void* at[4] = {a, b, c, out};
  for (int i = 0; i < 4; i++)
    if ((uintptr_t)at[i] % ((const algo*)how)->align[i]) return invalid_value;
  uint64_t m = C->rows, n = C->cols, k = d->trans[0] ? A->rows : A->cols;
  float f = *(const float*)alpha, g = *(const float*)beta;
  std::vector<float> rows(m * k), col(k);
  for (uint64_t i = 0; i < m; i++) {
    row_of(col, a, A, d->trans[0] != 0, i, k);
    memcpy(&rows[i * k], col.data(), k * 4);
  }
  for (uint64_t j = 0; j < n; j++) {
    row_of(col, b, B, d->trans[1] == 0, j, k);
    for (uint64_t i = 0; i < m; i++) {
      float sum = 0;
      for (uint64_t p = 0; p < k; p++) sum += rows[i * k + p] * col[p];
      put(out, C->type, i + j * C->ld, f * sum + (g ? g * get(out, C->type, i + j * C->ld) : 0));
    }
  }
  return success;
}
