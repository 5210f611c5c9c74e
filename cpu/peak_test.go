package cpu

import "testing"

// TestPeak: a rate comes out on any processor.
func TestPeak(t *testing.T) {
	for _, threads := range []int{1, 2} {
		if rate := Peak(threads); !(rate > 0.01) {
			t.Errorf("%d threads: %v GFLOP/s", threads, rate)
		}
		if rate := PeakBF16(threads); HasBF16() != (rate > 0) {
			t.Errorf("%d threads: %v GFLOP/s of bfloat16", threads, rate)
		}
	}
}
