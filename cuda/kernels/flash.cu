// Attention in bfloat16 on tensor cores, for heads of up to 64 and 128: the algorithm of attention.cu with products of 16 x 16 by 16 x 8 (mma.sync), sums in float.
// A block is 4 warps of 16 queries each, or of 16 keys; tiles of 64 rows of the other side pass by in shared memory, a row every D + 8, so that the 8 rows that
// a product reads at once lie in different banks. Heads smaller than D are padded with zeros, there only.
//
// Fragments (PTX manual, mma.m16n8k16): lane 4 g + t holds rows g and g + 8 of a result, columns 2t and 2t + 1 of each 8. Two results beside one another are
// the left operand of a product over their 16 columns, after rounding: weights never leave registers.

#define TILE 64
#define LOG2E 1.44269504088896341f
#define LN2 0.693147180559945309f

// word is elements c and c + 1 of a row; c is even.
DEVICE u32 word(const bf16* tile, int stride, int row, int c) { return *(const u32*)(tile + row * stride + c); }

// left_rows picks the left operand: 16 rows of a tile, columns c .. c + 16.
DEVICE void left_rows(u32* a, const bf16* tile, int stride, int row, int c) {
  int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  a[0] = word(tile, stride, row + g, c + 2 * t);
  a[1] = word(tile, stride, row + g + 8, c + 2 * t);
  a[2] = word(tile, stride, row + g, c + 2 * t + 8);
  a[3] = word(tile, stride, row + g + 8, c + 2 * t + 8);
}

// right_rows picks the right operand of a product with a tile's transpose: its 8 columns are rows of the tile.
DEVICE void right_rows(u32* b, const bf16* tile, int stride, int row, int c) {
  int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  b[0] = word(tile, stride, row + g, c + 2 * t);
  b[1] = word(tile, stride, row + g, c + 2 * t + 8);
}

// right_columns picks that of a product with a tile itself: 16 rows of it, columns c .. c + 8.
DEVICE void right_columns(u32* b, const bf16* tile, int stride, int row, int c) {
  load_columns(b, tile + (row + threadIdx.x % 16) * stride + c);
}

// stage copies a tile of one head from token `first` on into shared memory; rows beyond the sample, and columns beyond the head, are 0.
template <int D>
DEVICE void stage(bf16* to, const bf16* x, const attend& a, i64 sample, i64 head, i64 heads, i64 first) {
  if (a.dim == D && ((u64)x & 15) == 0) {  // 8 elements at a time
    for (int i = threadIdx.x; i < TILE * D / 8; i += blockDim.x) {
      int r = i / (D / 8), c = i % (D / 8) * 8;
      i64 s = first + r;
      four zero = {0, 0, 0, 0};
      *(four*)(to + r * (D + 8) + c) = s < a.seq ? *(const four*)(x + ((sample * a.seq + s) * heads + head) * D + c) : zero;
    }
    return;
  }
  for (int i = threadIdx.x; i < TILE * D; i += blockDim.x) {
    int r = i / D, c = i % D;
    i64 s = first + r;
    bf16 v;
    v.bits = 0;
    if (s < a.seq && c < a.dim) v = x[((sample * a.seq + s) * heads + head) * a.dim + c];
    to[r * (D + 8) + c] = v;
  }
}

// quad_sum and quad_max are over the 4 lanes that share a row.
DEVICE float quad_sum(float v) {
  v += __shfl_xor_sync(FULL_WARP, v, 1);
  return v + __shfl_xor_sync(FULL_WARP, v, 2);
}

DEVICE float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(FULL_WARP, v, 1));
  return fmaxf(v, __shfl_xor_sync(FULL_WARP, v, 2));
}

// all_seen says that n queries from s on see every one of m keys from j on: nothing to ask one by one.
DEVICE bool all_seen(const attend& a, i64 s, int n, i64 j, int m) {
  return !a.segments && s + n <= a.seq && j + m <= a.seq && (a.full || j + m - 1 <= s);
}

// store writes a warp's result of 16 rows from token `first` on.
template <int D>
DEVICE void store(bf16* y, float acc[D / 8][4], const float* by, const attend& a, i64 sample, i64 head, i64 heads, i64 first) {
  int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < D / 8; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      i64 s = first + g + i / 2 * 8;
      int c = n * 8 + 2 * t + i % 2;
      if (s < a.seq && c < a.dim) put(y, ((sample * a.seq + s) * heads + head) * a.dim + c, acc[n][i] * by[i / 2]);
    }
}

template <int D>
DEVICE void flash_forward(bf16* out, stat* lse, const bf16* q, const bf16* k, const bf16* v, const attend& a) {
  DYNAMIC_SHARED(bf16, room);
  const int stride = D + 8;
  bf16 *K = room, *V = room + TILE * stride;
  int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  i64 first = (i64)blockIdx.x * TILE, head = blockIdx.y, sample = blockIdx.z, kv = head / (a.heads / a.kv_heads), own = first + warp * 16;
  u32 Q[D / 16][4];
  float acc[D / 8][4], top[2] = {-INFINITE, -INFINITE}, sum[2] = {0, 0}, scale = a.scale * LOG2E;
  stage<D>(K, q, a, sample, head, a.heads, first);
  __syncthreads();
#pragma unroll
  for (int c = 0; c < D / 16; c++) left_rows(Q[c], K, stride, warp * 16, c * 16);
#pragma unroll
  for (int n = 0; n < D / 8; n++)
    for (int i = 0; i < 4; i++) acc[n][i] = 0;
  i64 end = a.full || first + TILE > a.seq ? a.seq : first + TILE;
  for (i64 k0 = 0; k0 < end; k0 += TILE) {
    __syncthreads();  // the tile before has been used
    stage<D>(K, k, a, sample, kv, a.kv_heads, k0);
    stage<D>(V, v, a, sample, kv, a.kv_heads, k0);
    __syncthreads();
    float p[TILE / 8][4];
#pragma unroll
    for (int n = 0; n < TILE / 8; n++) {
      for (int i = 0; i < 4; i++) p[n][i] = 0;
#pragma unroll
      for (int c = 0; c < D / 16; c++) {
        u32 b[2];
        right_rows(b, K, stride, n * 8, c * 16);
        multiply(p[n], Q[c], b);
      }
    }
    bool all = all_seen(a, own, 16, k0, TILE);
    float most[2] = {-INFINITE, -INFINITE}, fix[2];
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        i64 s = own + g + i / 2 * 8, j = k0 + n * 8 + 2 * t + i % 2;
        p[n][i] = all || sees(a, sample, s, j) ? p[n][i] * scale : -INFINITE;
        most[i / 2] = fmaxf(most[i / 2], p[n][i]);
      }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float m = fmaxf(top[h], quad_max(most[h]));
      fix[h] = top[h] == -INFINITE ? 0 : exp2f(top[h] - m);
      top[h] = m;
      sum[h] *= fix[h];
    }
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) acc[n][i] *= fix[i / 2];
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float w = p[n][i] == -INFINITE ? 0 : exp2f(p[n][i] - top[i / 2]);
        sum[i / 2] += w;
        p[n][i] = !a.limit || w == 0 ? w : w * factor(a, sample, head, own + g + i / 2 * 8, k0 + n * 8 + 2 * t + i % 2);
      }
#pragma unroll
    for (int j = 0; j < TILE / 16; j++) {
      u32 left[4] = {pair(p[2 * j][0], p[2 * j][1]), pair(p[2 * j][2], p[2 * j][3]), pair(p[2 * j + 1][0], p[2 * j + 1][1]), pair(p[2 * j + 1][2], p[2 * j + 1][3])};
#pragma unroll
      for (int n = 0; n < D / 8; n++) {
        u32 b[2];
        right_columns(b, V, stride, j * 16, n * 8);
        multiply(acc[n], left, b);
      }
    }
  }
  float by[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float all = quad_sum(sum[h]);
    i64 s = own + g + h * 8;
    by[h] = all > 0 ? 1 / all : 0;
    if (s < a.seq && t == 0) put(lse, (sample * a.heads + head) * a.seq + s, all > 0 ? (top[h] + log2f(all)) * LN2 : -INFINITE);
  }
  store<D>(out, acc, by, a, sample, head, a.heads, own);
}

// flash_queries: dq = dS k, a warp 16 queries; keys go by 16 at a time.
template <int D>
DEVICE void flash_queries(bf16* dq, const bf16* dout, const stat* lse, const float* delta, const bf16* q, const bf16* k, const bf16* v, const attend& a) {
  DYNAMIC_SHARED(bf16, room);
  const int stride = D + 8;
  bf16 *K = room, *V = room + TILE * stride;
  int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  i64 first = (i64)blockIdx.x * TILE, head = blockIdx.y, sample = blockIdx.z, kv = head / (a.heads / a.kv_heads), own = first + warp * 16;
  u32 Q[D / 16][4], O[D / 16][4];
  float acc[D / 8][4], scale = a.scale * LOG2E, low[2], mean[2], one[2] = {1, 1};
  stage<D>(K, q, a, sample, head, a.heads, first);
  stage<D>(V, dout, a, sample, head, a.heads, first);
  __syncthreads();
#pragma unroll
  for (int c = 0; c < D / 16; c++) {
    left_rows(Q[c], K, stride, warp * 16, c * 16);
    left_rows(O[c], V, stride, warp * 16, c * 16);
  }
#pragma unroll
  for (int n = 0; n < D / 8; n++)
    for (int i = 0; i < 4; i++) acc[n][i] = 0;
  for (int h = 0; h < 2; h++) {
    i64 s = own + g + h * 8, at = (sample * a.heads + head) * a.seq + s;
    low[h] = s < a.seq ? get(lse, at) * LOG2E : 0;
    mean[h] = s < a.seq ? delta[at] : 0;
  }
  i64 end = a.full || first + TILE > a.seq ? a.seq : first + TILE;
  for (i64 k0 = 0; k0 < end; k0 += TILE) {
    __syncthreads();
    stage<D>(K, k, a, sample, kv, a.kv_heads, k0);
    stage<D>(V, v, a, sample, kv, a.kv_heads, k0);
    __syncthreads();
    for (int j0 = 0; j0 < TILE; j0 += 16) {
      if (k0 + j0 >= a.seq || (!a.full && k0 + j0 > own + 15)) break;  // nobody of this warp sees the rest
      bool all = all_seen(a, own, 16, k0 + j0, 16);
      float ds[2][4];
#pragma unroll
      for (int n = 0; n < 2; n++) {
        float p[4] = {0, 0, 0, 0}, dp[4] = {0, 0, 0, 0};
#pragma unroll
        for (int c = 0; c < D / 16; c++) {
          u32 b[2];
          right_rows(b, K, stride, j0 + n * 8, c * 16);
          multiply(p, Q[c], b);
          right_rows(b, V, stride, j0 + n * 8, c * 16);
          multiply(dp, O[c], b);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
          i64 s = own + g + i / 2 * 8, j = k0 + j0 + n * 8 + 2 * t + i % 2;
          float w = all || sees(a, sample, s, j) ? exp2f(p[i] * scale - low[i / 2]) : 0;
          float f = !a.limit || w == 0 ? 1 : factor(a, sample, head, s, j);
          ds[n][i] = w == 0 ? 0 : w * (f * dp[i] - mean[i / 2]) * a.scale;
        }
      }
      u32 left[4] = {pair(ds[0][0], ds[0][1]), pair(ds[0][2], ds[0][3]), pair(ds[1][0], ds[1][1]), pair(ds[1][2], ds[1][3])};
#pragma unroll
      for (int n = 0; n < D / 8; n++) {
        u32 b[2];
        right_columns(b, K, stride, j0, n * 8);
        multiply(acc[n], left, b);
      }
    }
  }
  store<D>(dq, acc, one, a, sample, head, a.heads, own);
}

// flash_keys: dk = dS^T q and dv = P^T dout, a warp 16 keys of one key/value head; queries go by 16 at a time, its query heads one after another.
template <int D>
DEVICE void flash_keys(bf16* dk, bf16* dv, const bf16* dout, const stat* lse, const float* delta, const bf16* q, const bf16* k, const bf16* v, const attend& a) {
  DYNAMIC_SHARED(bf16, room);
  SHARED(float, low, TILE);
  SHARED(float, mean, TILE);
  const int stride = D + 8;
  bf16 *Q = room, *O = room + TILE * stride;
  int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  i64 first = (i64)blockIdx.x * TILE, kv = blockIdx.y, sample = blockIdx.z, group = a.heads / a.kv_heads, own = first + warp * 16;
  u32 K[D / 16][4], V[D / 16][4];
  float gk[D / 8][4], gv[D / 8][4], scale = a.scale * LOG2E, one[2] = {1, 1};
  stage<D>(Q, k, a, sample, kv, a.kv_heads, first);
  stage<D>(O, v, a, sample, kv, a.kv_heads, first);
  __syncthreads();
#pragma unroll
  for (int c = 0; c < D / 16; c++) {
    left_rows(K[c], Q, stride, warp * 16, c * 16);
    left_rows(V[c], O, stride, warp * 16, c * 16);
  }
#pragma unroll
  for (int n = 0; n < D / 8; n++)
    for (int i = 0; i < 4; i++) gk[n][i] = gv[n][i] = 0;
  for (i64 head = kv * group; head < (kv + 1) * group; head++)
    for (i64 s0 = a.full ? 0 : first; s0 < a.seq; s0 += TILE) {
      __syncthreads();
      stage<D>(Q, q, a, sample, head, a.heads, s0);
      stage<D>(O, dout, a, sample, head, a.heads, s0);
      for (int i = threadIdx.x; i < TILE; i += blockDim.x) {
        i64 at = (sample * a.heads + head) * a.seq + s0 + i;
        low[i] = s0 + i < a.seq ? get(lse, at) * LOG2E : 0;
        mean[i] = s0 + i < a.seq ? delta[at] : 0;
      }
      __syncthreads();
      for (int r0 = 0; r0 < TILE; r0 += 16) {
        if (s0 + r0 >= a.seq || (!a.full && s0 + r0 + 15 < own)) continue;  // queries before this warp's keys
        bool all = all_seen(a, s0 + r0, 16, own, 16);
        float w[2][4], ds[2][4];
#pragma unroll
        for (int n = 0; n < 2; n++) {
          float p[4] = {0, 0, 0, 0}, dp[4] = {0, 0, 0, 0};
#pragma unroll
          for (int c = 0; c < D / 16; c++) {
            u32 b[2];
            right_rows(b, Q, stride, r0 + n * 8, c * 16);
            multiply(p, K[c], b);
            right_rows(b, O, stride, r0 + n * 8, c * 16);
            multiply(dp, V[c], b);
          }
#pragma unroll
          for (int i = 0; i < 4; i++) {
            int r = r0 + n * 8 + 2 * t + i % 2;
            i64 s = s0 + r, j = own + g + i / 2 * 8;
            float x = all || sees(a, sample, s, j) ? exp2f(p[i] * scale - low[r]) : 0;
            float f = !a.limit || x == 0 ? 1 : factor(a, sample, head, s, j);
            w[n][i] = x * f;
            ds[n][i] = x == 0 ? 0 : x * (f * dp[i] - mean[r]) * a.scale;
          }
        }
        u32 left[4] = {pair(w[0][0], w[0][1]), pair(w[0][2], w[0][3]), pair(w[1][0], w[1][1]), pair(w[1][2], w[1][3])};
        u32 slope[4] = {pair(ds[0][0], ds[0][1]), pair(ds[0][2], ds[0][3]), pair(ds[1][0], ds[1][1]), pair(ds[1][2], ds[1][3])};
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
          u32 b[2];
          right_columns(b, O, stride, r0, n * 8);
          multiply(gv[n], left, b);
          right_columns(b, Q, stride, r0, n * 8);
          multiply(gk[n], slope, b);
        }
      }
    }
  store<D>(dk, gk, one, a, sample, kv, a.kv_heads, own);
  store<D>(dv, gv, one, a, sample, kv, a.kv_heads, own);
}

KERNEL(flash_64)(bf16* out, stat* lse, const bf16* q, const bf16* k, const bf16* v, attend a) { flash_forward<64>(out, lse, q, k, v, a); }
KERNEL(flash_128)(bf16* out, stat* lse, const bf16* q, const bf16* k, const bf16* v, attend a) { flash_forward<128>(out, lse, q, k, v, a); }

KERNEL(flash_queries_64)(bf16* dq, const bf16* dout, const stat* lse, const float* delta, const bf16* q, const bf16* k, const bf16* v, attend a) { flash_queries<64>(dq, dout, lse, delta, q, k, v, a); }
KERNEL(flash_queries_128)(bf16* dq, const bf16* dout, const stat* lse, const float* delta, const bf16* q, const bf16* k, const bf16* v, attend a) { flash_queries<128>(dq, dout, lse, delta, q, k, v, a); }

KERNEL(flash_keys_64)(bf16* dk, bf16* dv, const bf16* dout, const stat* lse, const float* delta, const bf16* q, const bf16* k, const bf16* v, attend a) { flash_keys<64>(dk, dv, dout, lse, delta, q, k, v, a); }
KERNEL(flash_keys_128)(bf16* dk, bf16* dv, const bf16* dout, const stat* lse, const float* delta, const bf16* q, const bf16* k, const bf16* v, attend a) { flash_keys<128>(dk, dv, dout, lse, delta, q, k, v, a); }
