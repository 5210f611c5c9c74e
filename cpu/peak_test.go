package cpu

import (
	"testing"
	"time"
)

// peakRate is the fp32 multiply-add rate of one thread in GFLOP/s, measured now: the best tile kernel on operands that stay in
// the first-level cache, which runs at the rate of the multiply-add units.
func peakRate(tb testing.TB) float64 {
	ks := tiling[float32](Supported()[0])
	if ks == nil {
		tb.Skip("no vector instructions")
	}
	const k = 96
	tile := ks.tiles[0]
	a, b, c := make([]float32, k*ks.rows), make([]float32, k*tile.width), make([]float32, ks.rows*tile.width)
	best := 0.0
	for range 5 {
		const rounds = 4000
		start := time.Now()
		for range rounds {
			tile.f(k, &a[0], &b[0], &c[0], tile.width, ks.rows, tile.width, 1)
		}
		best = max(best, 2*k*float64(ks.rows*tile.width)*rounds/time.Since(start).Seconds()/1e9)
	}
	return best
}
