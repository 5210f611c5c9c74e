package cpu

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkPeak is the multiply-add rate itself, the median of many short measurements: what shares of a whole step are held against.
func BenchmarkPeak(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads%d", threads), func(b *testing.B) {
			var rates []float64
			for b.Loop() {
				rates = append(rates, Peak(threads))
			}
			slices.Sort(rates)
			b.ReportMetric(rates[len(rates)/2], "GFLOP/s")
		})
	}
}
