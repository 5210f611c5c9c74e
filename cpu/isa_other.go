//go:build !amd64

package cpu

func vectorISAs() []ISA { return nil }

func tiling[T float](ISA) *kernels[T] { return nil }

func tilingPairs[T float](ISA) *kernels[T] { return nil }

func tilingHalves[T float](ISA, bool) *kernels[T] { return nil }

// HasBF16 says whether this processor multiplies bfloat16 in vectors, for Options.BF16.
func HasBF16() bool { return false }

const peakPairsFlop = 0

func peakPairs(int) {}

func rowKernels[T float](ISA) *rowOps { return nil }

func peakLoop() (flop float64, loop func(rounds int)) { return 8 * 2, peakPlain }
