package cpu

// peakLoop is the measuring loop of the best instruction set, and the floating-point operations of one round.
func peakLoop() (flop float64, loop func(rounds int)) {
	switch Supported()[0] {
	case AVX512:
		return 4 * 24 * 16 * 2, peakAVX512
	case AVX2:
		return 4 * 12 * 8 * 2, peakAVX2
	}
	return 8 * 2, peakPlain
}
