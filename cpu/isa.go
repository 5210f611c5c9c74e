package cpu

// ISA is a set of vector instructions.
type ISA string

const (
	AVX512 ISA = "avx512"
	AVX2   ISA = "avx2" // with FMA
	Plain  ISA = "go"   // plain Go, on any processor
)

// Supported lists what this processor runs, best first. Plain is always last.
func Supported() []ISA { return append(vectorISAs(), Plain) }
