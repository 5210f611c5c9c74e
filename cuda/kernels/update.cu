// Optimizer steps on flat slices, and sums in double: of what is kept in float whatever the storage type, and compiled once.

// adamw: Loshchilov & Hutter 2019, Algorithm 2, with the bias corrections folded into step and eps (Kingma & Ba 2015, end of §2);
// keep is 1 - rate decay.
KERNEL(adamw)(stat* w, const stat* g, stat* m, stat* v, i64 n, float scale, float beta1, float rest1, float beta2, float rest2, float step, float eps, float keep) {
  for (i64 i = first_thread(); i < n; i += all_threads()) {
    float x = get(g, i) * scale;
    float mi = beta1 * get(m, i) + rest1 * x, vi = beta2 * get(v, i) + rest2 * x * x;
    put(m, i, mi);
    put(v, i, vi);
    put(w, i, get(w, i) * keep - step * mi / (sqrtf(vi) + eps));
  }
}

// sgd: w -= rate (scale g + decay w), through m where there is momentum.
KERNEL(sgd)(stat* w, const stat* g, stat* m, i64 n, float rate, float momentum, float decay, float scale) {
  for (i64 i = first_thread(); i < n; i += all_threads()) {
    float x = scale * get(g, i) + decay * get(w, i);
    if (m) {
      x += momentum * get(m, i);
      put(m, i, x);
    }
    put(w, i, get(w, i) - rate * x);
  }
}

// squares_part: part[block] = sum of squares of the block's 16384 elements, in double.
KERNEL(squares_part)(double* part, const stat* x, i64 n) {
  i64 from = (i64)blockIdx.x * 16384, to = from + 16384 < n ? from + 16384 : n;
  double sum = 0;
  for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) sum += (double)get(x, i) * (double)get(x, i);
  sum = block_sum(sum);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

// total: one block adds up n parts.
KERNEL(total)(double* sum, const double* part, i64 n) {
  double s = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) s += part[i];
  s = block_sum(s);
  if (threadIdx.x == 0) sum[0] = s;
}
