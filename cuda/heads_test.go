package cuda

import (
	"testing"

	"triax/configs"
	"triax/cuda/driver"
)

// TestHeads: configurations are held to the heads that there are kernels for, and a device to those that it has room for.
func TestHeads(t *testing.T) {
	if configs.MaxHeadCUDA != MaxHead {
		t.Errorf("configurations allow heads of %d, there are kernels for %d", configs.MaxHeadCUDA, MaxHead)
	}
	for limit, want := range map[int]int{227 << 10: 256, 163 << 10: 256, 99 << 10: 252, 48 << 10: 116} { // of sm_90, sm_80, sm_86, and without asking
		if got := Heads(driver.Info{SharedLimit: limit}); got != want {
			t.Errorf("%d bytes of shared memory: heads of up to %d, want %d", limit, got, want)
		}
	}
}
