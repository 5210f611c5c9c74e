package cpu

import (
	"fmt"
	"testing"

	"triax/tensor"
	"triax/tensor/devicetest"
)

func TestConformance(t *testing.T) {
	for _, float := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16} {
		tol := map[tensor.DType]float64{tensor.F32: 1e-5, tensor.F64: 1e-12, tensor.BF16: 1.0 / 64}[float]
		for i, isa := range Supported() {
			threads := 1 + i%2
			t.Run(fmt.Sprintf("%v/%s/threads%d", float, isa, threads), func(t *testing.T) {
				devicetest.Run(t, func(*testing.T) tensor.Device {
					return New(Options{Float: float, Threads: threads, ISA: isa, Poison: true, HugePages: threads == 2})
				}, tol)
			})
		}
	}
	t.Run("bfloat16/vectors", func(t *testing.T) {
		devicetest.Run(t, func(*testing.T) tensor.Device {
			return New(Options{Float: tensor.BF16, NoTiles: true, Threads: 2, Poison: true})
		}, 1.0/64)
	})
}
