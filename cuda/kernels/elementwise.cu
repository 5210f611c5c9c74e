// Element by element: one pass over memory each.

KERNEL(add)(real* y, const real* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) put(y, i, get(y, i) + get(x, i));
}

KERNEL(scale)(real* y, float s, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) put(y, i, get(y, i) * s);
}

// add_bias: y [n / cols, cols] += b [cols].
KERNEL(add_bias)(real* y, const real* b, i64 n, i64 cols) {
  for (i64 i = first_thread(); i < n; i += all_threads()) put(y, i, get(y, i) + get(b, i % cols));
}

// scale_rows: y = x s, row by row.
KERNEL(scale_rows)(real* y, const real* x, const stat* s, i64 n, i64 cols) {
  for (i64 i = first_thread(); i < n; i += all_threads()) put(y, i, get(x, i) * get(s, i / cols));
}

// gelu(x) = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), Hendrycks & Gimpel 2016, §2. As (1 + tanh(u))/2 = 1/(1 + exp(-2u)),
// no digits cancel where tanh is near -1.
#define GELU_ROOT 0.79788456080286536f
#define GELU_CUBE 0.044715f

DEVICE float gelu_share(float v) { return 1 / (1 + expf(-2 * GELU_ROOT * (v + GELU_CUBE * v * v * v))); }

KERNEL(gelu)(real* y, const real* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) put(y, i, get(x, i) * gelu_share(get(x, i)));
}

KERNEL(gelu_grad)(real* dx, const real* x, const real* dy, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) {
    float v = get(x, i), s = gelu_share(v);
    put(dx, i, (s + 2 * v * s * (1 - s) * GELU_ROOT * (1 + 3 * GELU_CUBE * v * v)) * get(dy, i));
  }
}

// swiglu: y = silu(gate) up, Shazeer 2020, §2.
KERNEL(swiglu)(real* y, const real* gate, const real* up, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) {
    float g = get(gate, i);
    put(y, i, g / (1 + expf(-g)) * get(up, i));
  }
}

KERNEL(swiglu_grad)(real* dgate, real* dup, const real* gate, const real* up, const real* dy, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) {
    float g = get(gate, i), u = get(up, i), d = get(dy, i), s = 1 / (1 + expf(-g));
    put(dup, i, d * g * s);
    put(dgate, i, d * u * s * (1 + g * (1 - s)));
  }
}

// dropout: element (row, column) follows the stream at index[row] stride + offset + column. start is the stream's state at 0.
KERNEL(dropout)(real* y, const real* x, const i32* index, u64 start, u64 limit, i64 stride, i64 offset, float keep, i64 n, i64 cols) {
  for (i64 i = first_thread(); i < n; i += all_threads()) {
    u64 at = (u64)(index[i / cols] * stride + offset + i % cols);
    put(y, i, kept(start + at * STREAM_STEP, limit) ? get(x, i) * keep : 0);
  }
}

// rope turns pair (i, i + dim/2) of every head by position * freq[i] (Su et al. 2021, §3.4, half-split). A thread makes the turn of
// one token's pair, in double because an angle of thousands of radians leaves float no digits, and applies it to all heads.
KERNEL(rope)(real* x, const i32* positions, const double* freq, i64 tokens, i64 heads, i64 half, float sign) {
  for (i64 i = first_thread(); i < tokens * half; i += all_threads()) {
    i64 token = i / half, pair = i % half;
    double sine, cosine;
    sincos((double)positions[token] * freq[pair], &sine, &cosine);
    float c = (float)cosine, s = (float)sine * sign;
    for (i64 head = 0; head < heads; head++) {
      i64 at = (token * heads + head) * 2 * half + pair;
      float a = get(x, at), b = get(x, at + half);
      put(x, at, a * c - b * s);
      put(x, at + half, b * c + a * s);
    }
  }
}
