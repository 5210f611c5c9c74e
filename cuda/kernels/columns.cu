// Sums down columns in two stages, so that they are the same bits every time: blocks of 32 columns by 8 threads each sum a stretch
// of rows into part [chunks cols]; then the chunks add up in order.

// strip adds up the 8 sums of each of the block's 32 columns, in order. All threads call it.
DEVICE float strip(float v) {
  SHARED(float, column, 8 * 33);
  column[threadIdx.y * 33 + threadIdx.x] = v;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 8; i++) sum += column[i * 33 + threadIdx.x];
  __syncthreads();
  return sum;
}

// column_part: part[chunk] = sum of dy over the chunk's rows.
KERNEL(column_part)(float* part, const real* dy, i64 rows, i64 cols, i64 chunk) {
  i64 c = (i64)blockIdx.x * 32 + threadIdx.x, from = blockIdx.y * chunk, to = from + chunk < rows ? from + chunk : rows;
  float sum = 0;
  if (c < cols)
    for (i64 r = from + threadIdx.y; r < to; r += 8) sum += get(dy, r * cols + c);
  sum = strip(sum);
  if (c < cols && threadIdx.y == 0) part[blockIdx.y * cols + c] = sum;
}

// norm_weight_part: weight[chunk] = sum of dy (x - mean) rstd, bias[chunk] = sum of dy; mean and bias are absent in RMSNorm.
KERNEL(norm_weight_part)(float* weight, float* bias, const real* dy, const real* x, const stat* mean, const stat* rstd, i64 rows, i64 cols, i64 chunk) {
  i64 c = (i64)blockIdx.x * 32 + threadIdx.x, from = blockIdx.y * chunk, to = from + chunk < rows ? from + chunk : rows;
  float sum = 0, plain = 0;
  if (c < cols)
    for (i64 r = from + threadIdx.y; r < to; r += 8) {
      float g = get(dy, r * cols + c), m = mean ? get(mean, r) : 0;
      sum += g * (get(x, r * cols + c) - m) * get(rstd, r);
      plain += g;
    }
  sum = strip(sum);
  plain = strip(plain);
  if (c >= cols || threadIdx.y > 0) return;
  weight[blockIdx.y * cols + c] = sum;
  if (bias) bias[blockIdx.y * cols + c] = plain;
}

// column_finish: y [cols] += the chunks of part.
KERNEL(column_finish)(stat* y, const float* part, i64 cols, i64 chunks) {
  for (i64 c = first_thread(); c < cols; c += all_threads()) {
    float sum = 0;
    for (i64 i = 0; i < chunks; i++) sum += part[i * cols + c];
    put(y, c, get(y, c) + sum);
  }
}
