//go:build !amd64

package cpu

func vectorISAs() []ISA { return nil }

func tiling[T float](ISA) *kernels[T] { return nil }

func rowKernels[T float](ISA) *rowOps { return nil }
