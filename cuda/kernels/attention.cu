// Causal attention that never holds a matrix of scores: keys pass by in tiles of 32, one a lane, and sums are rescaled when a larger
// score appears (Dao 2023, §3.1). Queries go in tiles of 16: 4 warps of 4 rows. Everything is added in a fixed order: the gradients
// of keys and values are one block's each, with no atomics.
//
// C is the number of 32-wide strips that hold a head: kernels exist for heads of up to 32, 64, 128 and 256.

#define QUERIES 16
#define ROWS 4

// load copies n rows of one head from token `first` on into shared memory, a row every `stride`; rows beyond the sample are 0.
DEVICE void load(float* to, const real* x, const attend& a, i64 sample, i64 head, i64 heads, i64 first, int n, int stride) {
  for (int i = threadIdx.x; i < n * a.dim; i += blockDim.x) {
    int r = i / a.dim, c = i % a.dim;
    i64 s = first + r;
    to[r * stride + c] = s < a.seq ? get(x, ((sample * a.seq + s) * heads + head) * a.dim + c) : 0;
  }
}

DEVICE float dot(const float* x, const float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

template <int C>
DEVICE void attention_forward(real* out, stat* lse, const real* q, const real* k, const real* v, const attend& a) {
  DYNAMIC_SHARED(float, room);
  float* Q = room;                      // [QUERIES dim]
  float* K = Q + QUERIES * a.dim;       // [32 dim+1]: lanes read rows of their own, odd strides keep them apart
  float* V = K + 32 * (a.dim + 1);      // [32 dim]
  float* P = V + 32 * a.dim;            // [QUERIES 32]
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  i64 first = (i64)blockIdx.x * QUERIES, head = blockIdx.y, sample = blockIdx.z, kv = head / (a.heads / a.kv_heads);
  float acc[ROWS][C], top[ROWS], sum[ROWS];
  for (int r = 0; r < ROWS; r++) {
    top[r] = -INFINITE;
    sum[r] = 0;
    for (int c = 0; c < C; c++) acc[r][c] = 0;
  }
  load(Q, q, a, sample, head, a.heads, first, QUERIES, a.dim);
  i64 end = a.full || first + QUERIES > a.seq ? a.seq : first + QUERIES;
  for (i64 k0 = 0; k0 < end; k0 += 32) {
    __syncthreads();  // the tile before has been used
    load(K, k, a, sample, kv, a.kv_heads, k0, 32, a.dim + 1);
    load(V, v, a, sample, kv, a.kv_heads, k0, 32, a.dim);
    __syncthreads();
    for (int r = 0; r < ROWS; r++) {
      i64 s = first + warp * ROWS + r, j = k0 + lane;
      float z = sees(a, sample, s, j) ? a.scale * dot(Q + (warp * ROWS + r) * a.dim, K + lane * (a.dim + 1), a.dim) : -INFINITE;
      float t = fmaxf(top[r], warp_max(z));
      float p = z == -INFINITE ? 0 : expf(z - t), fix = top[r] == -INFINITE ? 0 : expf(top[r] - t);
      top[r] = t;
      sum[r] = sum[r] * fix + p;
      for (int c = 0; c < C; c++) acc[r][c] *= fix;
      P[(warp * ROWS + r) * 32 + lane] = p == 0 ? 0 : p * factor(a, sample, head, s, j);
    }
    __syncwarp();
    for (int j = 0; j < 32; j++)
      for (int c = 0; c < C; c++) {
        if (c * 32 + lane >= a.dim) continue;
        float x = V[j * a.dim + c * 32 + lane];
        for (int r = 0; r < ROWS; r++) acc[r][c] += P[(warp * ROWS + r) * 32 + j] * x;
      }
  }
  for (int r = 0; r < ROWS; r++) {
    i64 s = first + warp * ROWS + r;
    float all = warp_sum(sum[r]), f = all > 0 ? 1 / all : 0;
    if (s >= a.seq) continue;
    if (lane == 0) put(lse, (sample * a.heads + head) * a.seq + s, all > 0 ? top[r] + logf(all) : -INFINITE);
    for (int c = 0; c < C; c++)
      if (c * 32 + lane < a.dim) put(out, ((sample * a.seq + s) * a.heads + head) * a.dim + c * 32 + lane, acc[r][c] * f);
  }
}

// attention_delta: delta [samples heads seq] = dout . out, a warp a row.
KERNEL(attention_delta)(float* delta, const real* dout, const real* out, i64 rows, i64 heads, i64 seq, i64 dim) {
  i64 row = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;  // token and head
  if (row >= rows) return;
  float sum = 0;
  for (i64 c = threadIdx.x % 32; c < dim; c += 32) sum += get(dout, row * dim + c) * get(out, row * dim + c);
  sum = warp_sum(sum);
  i64 token = row / heads, head = row % heads;
  if (threadIdx.x % 32 == 0) delta[((token / seq) * heads + head) * seq + token % seq] = sum;
}

// slopes is one element of P after dropout and of dS = P (dP - delta) scale (Dao et al. 2022, App. B.2), from rows in shared memory.
DEVICE void slopes(float* p, float* ds, const attend& a, i64 sample, i64 head, i64 s, i64 j, const float* q, const float* k, const float* dout, const float* v, float lse, float delta) {
  *p = 0;
  *ds = 0;
  if (!sees(a, sample, s, j)) return;
  float w = expf(a.scale * dot(q, k, a.dim) - lse), f = factor(a, sample, head, s, j);
  *p = w * f;
  *ds = w * (f * dot(dout, v, a.dim) - delta) * a.scale;
}

// attention_queries: dq = dS k, a block a tile of queries.
template <int C>
DEVICE void attention_queries(real* dq, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, const attend& a) {
  DYNAMIC_SHARED(float, room);
  float* Q = room;
  float* D = Q + QUERIES * a.dim;       // dout
  float* K = D + QUERIES * a.dim;
  float* V = K + 32 * (a.dim + 1);
  float* S = V + 32 * (a.dim + 1);      // dS [QUERIES 32]
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  i64 first = (i64)blockIdx.x * QUERIES, head = blockIdx.y, sample = blockIdx.z, kv = head / (a.heads / a.kv_heads);
  float acc[ROWS][C];
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < C; c++) acc[r][c] = 0;
  load(Q, q, a, sample, head, a.heads, first, QUERIES, a.dim);
  load(D, dout, a, sample, head, a.heads, first, QUERIES, a.dim);
  i64 end = a.full || first + QUERIES > a.seq ? a.seq : first + QUERIES;
  for (i64 k0 = 0; k0 < end; k0 += 32) {
    __syncthreads();
    load(K, k, a, sample, kv, a.kv_heads, k0, 32, a.dim + 1);
    load(V, v, a, sample, kv, a.kv_heads, k0, 32, a.dim + 1);
    __syncthreads();
    for (int r = 0; r < ROWS; r++) {
      int row = warp * ROWS + r;
      i64 s = first + row, at = (sample * a.heads + head) * a.seq + s;
      float p, ds;
      slopes(&p, &ds, a, sample, head, s, k0 + lane, Q + row * a.dim, K + lane * (a.dim + 1), D + row * a.dim, V + lane * (a.dim + 1),
             s < a.seq ? get(lse, at) : 0, s < a.seq ? delta[at] : 0);
      S[row * 32 + lane] = ds;
    }
    __syncwarp();
    for (int j = 0; j < 32; j++)
      for (int c = 0; c < C; c++) {
        if (c * 32 + lane >= a.dim) continue;
        float x = K[j * (a.dim + 1) + c * 32 + lane];
        for (int r = 0; r < ROWS; r++) acc[r][c] += S[(warp * ROWS + r) * 32 + j] * x;
      }
  }
  for (int r = 0; r < ROWS; r++) {
    i64 s = first + warp * ROWS + r;
    for (int c = 0; c < C; c++)
      if (s < a.seq && c * 32 + lane < a.dim) put(dq, ((sample * a.seq + s) * a.heads + head) * a.dim + c * 32 + lane, acc[r][c]);
  }
}

// attention_keys: dk = dS^T q and dv = P^T dout, a block a tile of 32 keys of one key/value head; its query heads add up in order.
template <int C>
DEVICE void attention_keys(real* dk, real* dv, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, const attend& a) {
  DYNAMIC_SHARED(float, room);
  float* K = room;
  float* V = K + 32 * (a.dim + 1);
  float* Q = V + 32 * (a.dim + 1);
  float* D = Q + QUERIES * a.dim;
  float* P = D + QUERIES * a.dim;       // [QUERIES 32]
  float* S = P + QUERIES * 32;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  i64 first = (i64)blockIdx.x * 32, kv = blockIdx.y, sample = blockIdx.z, group = a.heads / a.kv_heads;
  float gk[8][C], gv[8][C];  // keys 8 warp .. 8 warp + 8
  for (int j = 0; j < 8; j++)
    for (int c = 0; c < C; c++) gk[j][c] = gv[j][c] = 0;
  load(K, k, a, sample, kv, a.kv_heads, first, 32, a.dim + 1);
  load(V, v, a, sample, kv, a.kv_heads, first, 32, a.dim + 1);
  for (i64 head = kv * group; head < (kv + 1) * group; head++)
    for (i64 s0 = a.full ? 0 : first; s0 < a.seq; s0 += QUERIES) {
      __syncthreads();
      load(Q, q, a, sample, head, a.heads, s0, QUERIES, a.dim);
      load(D, dout, a, sample, head, a.heads, s0, QUERIES, a.dim);
      __syncthreads();
      for (int r = 0; r < ROWS; r++) {
        int row = warp * ROWS + r;
        i64 s = s0 + row, at = (sample * a.heads + head) * a.seq + s;
        slopes(P + row * 32 + lane, S + row * 32 + lane, a, sample, head, s, first + lane, Q + row * a.dim, K + lane * (a.dim + 1),
               D + row * a.dim, V + lane * (a.dim + 1), s < a.seq ? get(lse, at) : 0, s < a.seq ? delta[at] : 0);
      }
      __syncthreads();
      for (int row = 0; row < QUERIES; row++)
        for (int c = 0; c < C; c++) {
          if (c * 32 + lane >= a.dim) continue;
          float x = Q[row * a.dim + c * 32 + lane], d = D[row * a.dim + c * 32 + lane];
          for (int j = 0; j < 8; j++) {
            gk[j][c] += S[row * 32 + warp * 8 + j] * x;
            gv[j][c] += P[row * 32 + warp * 8 + j] * d;
          }
        }
    }
  for (int j = 0; j < 8; j++) {
    i64 s = first + warp * 8 + j;
    for (int c = 0; c < C; c++) {
      if (s >= a.seq || c * 32 + lane >= a.dim) continue;
      i64 at = ((sample * a.seq + s) * a.kv_heads + kv) * a.dim + c * 32 + lane;
      put(dk, at, gk[j][c]);
      put(dv, at, gv[j][c]);
    }
  }
}

KERNEL(attention_32)(real* out, stat* lse, const real* q, const real* k, const real* v, attend a) { attention_forward<1>(out, lse, q, k, v, a); }
KERNEL(attention_64)(real* out, stat* lse, const real* q, const real* k, const real* v, attend a) { attention_forward<2>(out, lse, q, k, v, a); }
KERNEL(attention_128)(real* out, stat* lse, const real* q, const real* k, const real* v, attend a) { attention_forward<4>(out, lse, q, k, v, a); }
KERNEL(attention_256)(real* out, stat* lse, const real* q, const real* k, const real* v, attend a) { attention_forward<8>(out, lse, q, k, v, a); }

KERNEL(attention_queries_32)(real* dq, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_queries<1>(dq, dout, lse, delta, q, k, v, a); }
KERNEL(attention_queries_64)(real* dq, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_queries<2>(dq, dout, lse, delta, q, k, v, a); }
KERNEL(attention_queries_128)(real* dq, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_queries<4>(dq, dout, lse, delta, q, k, v, a); }
KERNEL(attention_queries_256)(real* dq, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_queries<8>(dq, dout, lse, delta, q, k, v, a); }

KERNEL(attention_keys_32)(real* dk, real* dv, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_keys<1>(dk, dv, dout, lse, delta, q, k, v, a); }
KERNEL(attention_keys_64)(real* dk, real* dv, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_keys<2>(dk, dv, dout, lse, delta, q, k, v, a); }
KERNEL(attention_keys_128)(real* dk, real* dv, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_keys<4>(dk, dv, dout, lse, delta, q, k, v, a); }
KERNEL(attention_keys_256)(real* dk, real* dv, const real* dout, const stat* lse, const float* delta, const real* q, const real* k, const real* v, attend a) { attention_keys<8>(dk, dv, dout, lse, delta, q, k, v, a); }

// attention_merge weighs both results by their share of the joint sum of exponentials (Liu et al. 2023, §3). A warp a row; rows [tokens heads].
KERNEL(attention_merge)(real* out, stat* lse, const real* part, const stat* part_lse, i64 rows, i64 heads, i64 seq, i64 dim) {
  i64 row = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  i64 token = row / heads, at = ((token / seq) * heads + row % heads) * seq + token % seq;
  float x = get(lse, at), y = get(part_lse, at), top = fmaxf(x, y);
  if (top == -INFINITE) return;  // no key seen in either
  float sum = top + logf(expf(x - top) + expf(y - top)), f = expf(x - sum), g = expf(y - sum);
  for (i64 c = lane; c < dim; c += 32) put(out, row * dim + c, f * get(out, row * dim + c) + g * get(part, row * dim + c));
  __syncwarp();  // all lanes have read lse
  if (lane == 0) put(lse, at, sum);
}
