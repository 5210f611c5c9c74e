// Cross-entropy over rows of logits [rows cols], of which `valid` columns hold the vocabulary from `lo` on. A block a row.

// column is where the row's target is, -1 when it is masked or held elsewhere.
DEVICE i64 column(i32 target, i64 lo, i64 valid) {
  i64 c = target - lo;
  return target < 0 || c < 0 || c >= valid ? -1 : c;
}

KERNEL(row_max)(stat* max, const real* logits, i64 cols, i64 valid) {
  i64 at = (i64)blockIdx.x * cols;
  float top = -INFINITE;
  for (i64 c = threadIdx.x; c < valid; c += blockDim.x) top = fmaxf(top, get(logits, at + c));
  top = block_max(top);
  if (threadIdx.x == 0) put(max, blockIdx.x, top);
}

// row_sum: sum of exp(logit - max), and the target's logit, 0 where it is not here.
KERNEL(row_sum)(stat* sum, stat* target, const real* logits, const stat* max, const i32* targets, i64 cols, i64 lo, i64 valid) {
  i64 row = blockIdx.x, at = row * cols;
  float m = get(max, row), s = 0;
  for (i64 c = threadIdx.x; c < valid; c += blockDim.x) s += expf(get(logits, at + c) - m);
  s = block_sum(s);
  if (threadIdx.x > 0) return;
  put(sum, row, s);
  i64 here = column(targets[row], lo, valid);
  put(target, row, here < 0 ? 0 : get(logits, at + here));
}

// loss_grad: logits = scale (softmax - onehot), in place; 0 in masked rows and in padding.
KERNEL(loss_grad)(real* logits, const stat* max, const stat* sum, const i32* targets, i64 cols, i64 lo, i64 valid, float scale) {
  i64 row = blockIdx.x, at = row * cols, here = column(targets[row], lo, valid);
  float m = get(max, row), f = scale / get(sum, row);
  if (targets[row] < 0) valid = 0;
  for (i64 c = threadIdx.x; c < cols; c += blockDim.x) {
    float v = c < valid ? f * expf(get(logits, at + c) - m) : 0;
    put(logits, at + c, c == here ? v - scale : v);
  }
}

// loss_part: part[block] = sum over the block's 1024 rows of log(sum) + max - target, in double.
KERNEL(loss_part)(double* part, const stat* sum, const stat* target, const stat* max, const i32* targets, i64 rows) {
  i64 from = (i64)blockIdx.x * 1024, to = from + 1024 < rows ? from + 1024 : rows;
  double loss = 0;
  for (i64 r = from + threadIdx.x; r < to; r += blockDim.x)
    if (targets[r] >= 0) loss += log((double)get(sum, r)) + (double)get(max, r) - (double)get(target, r);
  loss = block_sum(loss);
  if (threadIdx.x == 0) part[blockIdx.x] = loss;
}
