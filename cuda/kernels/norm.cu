// Normalisation over rows: a warp a row, statistics in float, two passes so that a large common offset does not drown the variance.
// Blocks have 128 threads.

DEVICE i64 warp_row() { return (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; }

// dot_rows: s [rows] = x . y row by row.
KERNEL(dot_rows)(stat* s, const real* x, const real* y, i64 rows, i64 cols) {
  i64 row = warp_row(), lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (i64 c = lane; c < cols; c += 32) sum += get(x, row * cols + c) * get(y, row * cols + c);
  sum = warp_sum(sum);
  if (lane == 0) put(s, row, sum);
}

// layer_norm: y = (x - mean) rstd w + b, Ba et al. 2016, §3.
KERNEL(layer_norm)(real* y, stat* mean, stat* rstd, const real* x, const real* w, const real* b, i64 rows, i64 cols, float eps) {
  i64 row = warp_row(), lane = threadIdx.x % 32, at = row * cols;
  if (row >= rows) return;
  float sum = 0, square = 0;
  for (i64 c = lane; c < cols; c += 32) sum += get(x, at + c);
  float m = warp_sum(sum) / cols;
  for (i64 c = lane; c < cols; c += 32) {
    float d = get(x, at + c) - m;
    square += d * d;
  }
  float r = 1 / sqrtf(warp_sum(square) / cols + eps);
  if (lane == 0) {
    put(mean, row, m);
    put(rstd, row, r);
  }
  for (i64 c = lane; c < cols; c += 32) put(y, at + c, (get(x, at + c) - m) * r * get(w, c) + get(b, c));
}

// rms_norm: y = x rstd w, Zhang & Sennrich 2019, §3.
KERNEL(rms_norm)(real* y, stat* rstd, const real* x, const real* w, i64 rows, i64 cols, float eps) {
  i64 row = warp_row(), lane = threadIdx.x % 32, at = row * cols;
  if (row >= rows) return;
  float square = 0;
  for (i64 c = lane; c < cols; c += 32) square += get(x, at + c) * get(x, at + c);
  float r = 1 / sqrtf(warp_sum(square) / cols + eps);
  if (lane == 0) put(rstd, row, r);
  for (i64 c = lane; c < cols; c += 32) put(y, at + c, get(x, at + c) * r * get(w, c));
}

// norm_input: with n = (x - mean) rstd and g = dy w, dx = rstd (g - avg(g) - n avg(g n)); without mean (RMSNorm) there is no avg(g).
KERNEL(norm_input)(real* dx, const real* dy, const real* x, const real* w, const stat* mean, const stat* rstd, i64 rows, i64 cols) {
  i64 row = warp_row(), lane = threadIdx.x % 32, at = row * cols;
  if (row >= rows) return;
  float m = mean ? get(mean, row) : 0, r = get(rstd, row), sum = 0, dot = 0;
  for (i64 c = lane; c < cols; c += 32) {
    float g = get(dy, at + c) * get(w, c);
    sum += g;
    dot += g * (get(x, at + c) - m) * r;
  }
  sum = mean ? warp_sum(sum) / cols : 0;
  dot = warp_sum(dot) / cols;
  for (i64 c = lane; c < cols; c += 32) {
    float n = (get(x, at + c) - m) * r;
    put(dx, at + c, r * (get(dy, at + c) * get(w, c) - sum - n * dot));
  }
}
