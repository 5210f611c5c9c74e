package cpu

import (
	"fmt"
	"testing"
	"unsafe"

	"triax/tensor"
)

// TestArenas: tensors from arenas start on cache lines, do not overlap, and hold what was asked for.
func TestArenas(t *testing.T) {
	d := New(Options{Float: tensor.F32, HugePages: true})
	defer d.Close()
	var all []*tensor.Tensor
	for i, n := range []int{1, 17, 64, 1000, 1 << 20, 3 << 20, 5} {
		x := d.New(tensor.Workspace, n)
		if at := uintptr(unsafe.Pointer(&x.F32()[0])); at%line != 0 {
			t.Errorf("%d elements start at %#x", n, at)
		}
		for j := range x.F32() {
			x.F32()[j] = float32(i)
		}
		all = append(all, x)
	}
	for i, x := range all {
		for j, v := range x.F32() {
			if v != float32(i) {
				t.Fatalf("tensor %d, element %d is %v", i, j, v)
			}
		}
	}
	if x := d.New(tensor.Workspace, 0); x.Len() != 0 {
		t.Errorf("%v", x)
	}
}

// BenchmarkFirstTouch is the first use of fresh memory, from arenas and not.
func BenchmarkFirstTouch(b *testing.B) {
	const n = 16 << 20
	for _, huge := range []bool{false, true} {
		b.Run(fmt.Sprintf("huge=%v", huge), func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				d := New(Options{Float: tensor.F32, HugePages: huge})
				d.Zero(d.New(tensor.Workspace, n))
				d.Close()
			}
		})
	}
}
