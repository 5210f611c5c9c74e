// What attention is over: one struct, taken by value by the kernels of attention.cu and flash.cu, whose text follows this one.

struct attend {
  const i32* segments;      // document numbers of queries; null for none
  const i32* key_segments;  // and of keys
  const i32* samples;       // numbers of samples in the global batch, for dropout
  u64 start, limit;         // the dropout stream; limit 0 drops nothing
  i64 heads_total, head_offset, seq_total, query_offset, key_offset;
  i32 seq, heads, kv_heads, dim, full;
  float scale, keep;
  i32 rest;
};

// sees says whether query s may look at key j, both inside the sample.
DEVICE bool sees(const attend& a, i64 sample, i64 s, i64 j) {
  if (s >= a.seq || j >= a.seq || (!a.full && j > s)) return false;
  return !a.segments || a.segments[sample * a.seq + s] == a.key_segments[sample * a.seq + j];
}

// factor is what dropout multiplies the weight of key j by: 0, or 1/(1-rate).
DEVICE float factor(const attend& a, i64 sample, i64 head, i64 s, i64 j) {
  if (!a.limit) return 1;
  u64 row = (u64)(a.samples[sample] * a.heads_total + a.head_offset + head);
  u64 at = (row * a.seq_total + (u64)(s + a.query_offset)) * a.seq_total + (u64)(j + a.key_offset);
  return kept(a.start + at * STREAM_STEP, a.limit) ? a.keep : 0;
}
