package schedule

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
