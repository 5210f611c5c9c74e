// Conversions between the floating types, to nearest even. They do not depend on the storage type and are compiled once.

// bf16_of_double rounds straight from double: float in between could move a tie. Rounding to odd first keeps which side of a tie the
// value was on (Boldo & Melquiond 2008).
DEVICE bf16 bf16_of_double(double v) {
  float f = (float)v;
  double back = (double)f;
  u32 b = __float_as_uint(f);
  if (v == v && back != v && fabs(back) < 1e300 && (b & 1) == 0) b += (v > back) == (v > 0) ? 1 : -1;
  return bf16_of(__uint_as_float(b));
}

KERNEL(copy_f32_f64)(double* y, const float* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) y[i] = (double)x[i];
}

KERNEL(copy_f32_bf16)(bf16* y, const float* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) y[i] = bf16_of(x[i]);
}

KERNEL(copy_f64_f32)(float* y, const double* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) y[i] = (float)x[i];
}

KERNEL(copy_f64_bf16)(bf16* y, const double* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) y[i] = bf16_of_double(x[i]);
}

KERNEL(copy_bf16_f32)(float* y, const bf16* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) y[i] = get(x, i);
}

KERNEL(copy_bf16_f64)(double* y, const bf16* x, i64 n) {
  for (i64 i = first_thread(); i < n; i += all_threads()) y[i] = (double)get(x, i);
}
