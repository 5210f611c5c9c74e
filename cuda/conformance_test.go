package cuda

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"triax/cuda/kernels"
	"triax/tensor"
	"triax/tensor/devicetest"
)

// TestConformance: every device of the machine passes the suite, in both types. The emulator has a device for each order in which threads
// may run, so that a missing barrier has four chances to show. Every kernel takes part.
func TestConformance(t *testing.T) {
	m := testMachine(t)
	infos, err := m.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if onGPU() {
		infos = infos[:1]
	}
	var mu sync.Mutex
	launches := map[kernelKey]int{}
	for _, float := range []tensor.DType{tensor.F32, tensor.BF16} {
		tol := map[tensor.DType]float64{tensor.F32: 1e-5, tensor.BF16: 1.0 / 64}[float]
		for _, info := range infos {
			t.Run(fmt.Sprintf("%v/device%d", float, info.Ordinal), func(t *testing.T) {
				devicetest.Run(t, func(t *testing.T) tensor.Device {
					d := testDevice(t, Options{Ordinal: info.Ordinal, Float: float, Poison: true})
					d.launched = func(k kernelKey) {
						mu.Lock()
						defer mu.Unlock()
						launches[k]++
					}
					return d
				}, tol)
			})
		}
	}
	failed, total := t.Failed(), 0
	for n := range maps.Values(launches) {
		total += n
	}
	t.Logf("%d kernels, of which %d in both types: %d launches", len(kernels.All()), len(launches)-len(kernels.All()), total)
	for _, s := range kernels.All() {
		for _, bf16 := range []bool{false, true} {
			if n := launches[kernelKey{s.Name, bf16}]; n == 0 && takesPart(s, bf16) && !failed {
				t.Errorf("%v was never launched, bfloat16 %v", s, bf16)
			}
		}
	}
}

// takesPart says whether the device has a use for a kernel compiled for a storage type.
func takesPart(s kernels.Signature, bf16 bool) bool {
	if kernels.Plain(s.File) || s.Name == "loss_part" { // which reads none
		return !bf16
	}
	if s.File == "attention.cu" && bf16 { // smaller heads go by flash.cu
		return strings.HasSuffix(s.Name, "_256") || s.Name == "attention_delta" || s.Name == "attention_merge"
	}
	return bf16 || s.Name != "embed_grad_sum" // sums are what is stored
}
