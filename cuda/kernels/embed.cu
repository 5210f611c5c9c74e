// Rows of a table by id; ids outside of lo .. lo+rows are held elsewhere.

KERNEL(embed)(real* y, const real* table, const i32* ids, i64 tokens, i64 cols, i64 lo, i64 rows) {
  for (i64 i = first_thread(); i < tokens * cols; i += all_threads()) {
    i64 row = ids[i / cols] - lo;
    put(y, i, row < 0 || row >= rows ? 0 : get(table, row * cols + i % cols));
  }
}

// The gradient adds the rows of dy of each id in the order of the tokens, without atomics. For that tokens are sorted by id, stably: a
// radix sort of 4 bits a pass. In a pass each thread owns RUN tokens one after another and goes through them twice: to count its
// digits, and, when all counts have been summed up by (digit, thread), to put them where they go.
#define RUN 64

// embed_keys: key[t] = the token's row, `rows` for ids held elsewhere, which sort behind all others; order[t] = t.
KERNEL(embed_keys)(i32* key, i32* order, const i32* ids, i64 tokens, i64 lo, i64 rows) {
  for (i64 t = first_thread(); t < tokens; t += all_threads()) {
    i64 row = ids[t] - lo;
    key[t] = (i32)(row < 0 || row >= rows ? rows : row);
    order[t] = (i32)t;
  }
}

// sort_count: count[digit][thread] over the thread's run, for `runs` threads.
KERNEL(sort_count)(i32* count, const i32* key, i64 tokens, i64 runs, i32 shift) {
  i64 run = first_thread();
  if (run >= runs) return;
  i32 n[16];
  for (int d = 0; d < 16; d++) n[d] = 0;
  for (i64 t = run * RUN; t < (run + 1) * RUN && t < tokens; t++) {
    int digit = (key[t] >> shift) & 15;
    for (int d = 0; d < 16; d++) n[d] += d == digit;  // no indexing: n stays in registers
  }
  for (int d = 0; d < 16; d++) count[d * runs + run] = n[d];
}

// sort_scan: one block of 256 threads turns counts into the sums of all before them.
KERNEL(sort_scan)(i32* count, i64 n) {
  SHARED(i32, sums, 256);
  i64 each = (n + 255) / 256, from = threadIdx.x * each, to = from + each < n ? from + each : n;
  i32 sum = 0;
  for (i64 i = from; i < to; i++) sum += count[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  i32 before = 0;
  for (int i = 0; i < (int)threadIdx.x; i++) before += sums[i];
  for (i64 i = from; i < to; i++) {
    i32 own = count[i];
    count[i] = before;
    before += own;
  }
}

KERNEL(sort_place)(i32* key_to, i32* order_to, i32* count, const i32* key, const i32* order, i64 tokens, i64 runs, i32 shift) {
  i64 run = first_thread();
  if (run >= runs) return;
  for (i64 t = run * RUN; t < (run + 1) * RUN && t < tokens; t++) {
    i64 at = count[((key[t] >> shift) & 15) * runs + run]++;
    key_to[at] = key[t];
    order_to[at] = order[t];
  }
}

// add_rows: a block takes the sorted tokens from blockIdx.x on where a row begins, and adds them up; threads share out columns.
template <class T>
DEVICE void add_rows(T* dtable, const real* dy, const i32* key, const i32* order, i64 tokens, i64 cols, i64 rows) {
  i64 first = blockIdx.x;
  i32 row = key[first];
  if (row >= rows || (first > 0 && key[first - 1] == row)) return;
  for (i64 c = (i64)blockIdx.y * blockDim.x + threadIdx.x; c < cols; c += (i64)gridDim.y * blockDim.x) {
    float sum = 0;
    for (i64 t = first; t < tokens && key[t] == row; t++) sum += get(dy, order[t] * cols + c);
    put(dtable, row * cols + c, get(dtable, row * cols + c) + sum);
  }
}

// embed_grad: dtable += the rows of dy; embed_grad_sum where sums are kept in float.
KERNEL(embed_grad)(real* dtable, const real* dy, const i32* key, const i32* order, i64 tokens, i64 cols, i64 rows) { add_rows(dtable, dy, key, order, tokens, cols, rows); }
KERNEL(embed_grad_sum)(stat* dtable, const real* dy, const i32* key, const i32* order, i64 tokens, i64 cols, i64 rows) { add_rows(dtable, dy, key, order, tokens, cols, rows); }
