package schedule

import "math"

// CutEven spreads n layers over stages as evenly as can be, the longer ones first: 30 over 4 is 8 8 7 7.
// With fewer layers than stages the last stages are empty; the caller decides whether that is an error.
func CutEven(layers, stages int) []int {
	out := make([]int, stages)
	for i := range out {
		out[i] = layers / stages
		if i < layers%stages {
			out[i]++
		}
	}
	return out
}

// CutByCost spreads layers of the given costs over stages so that the dearest stage is as cheap as can be; before is added to
// the first stage (the embedding) and after to the last (norm, output matrix and loss). Every stage gets a layer
// where there are enough. Among cuts that cost the same, earlier stages are longer: five equal layers over four
// stages are 2 1 1 1.
func CutByCost(costs []float64, before, after float64, stages int) []int {
	n := len(costs)
	if n < stages {
		return CutEven(n, stages)
	}
	price := func(stage, lo, hi int) float64 {
		c := 0.0
		if stage == 0 {
			c += before
		}
		if stage == stages-1 {
			c += after
		}
		for _, x := range costs[lo:hi] {
			c += x
		}
		return c
	}
	// best[s][i] is the dearest of stages s and up when they share out the layers from i.
	best := make([][]float64, stages+1)
	for s := range best {
		best[s] = make([]float64, n+1)
		for i := range best[s] {
			best[s][i] = math.Inf(1)
		}
	}
	best[stages][n] = 0
	for s := stages - 1; s >= 0; s-- {
		for i := range n {
			for j := i + 1; j <= n; j++ {
				best[s][i] = min(best[s][i], max(price(s, i, j), best[s+1][j]))
			}
		}
	}
	limit := best[0][0] * (1 + 1e-12) // sums in another order may differ in the last bits
	out := make([]int, stages)
	at := 0
	for s := range stages {
		for j := n; j > at; j-- {
			if price(s, at, j) <= limit && best[s+1][j] <= limit {
				out[s], at = j-at, j
				break
			}
		}
	}
	return out
}
