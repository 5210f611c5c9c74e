package tensor

import (
	"fmt"
	"strings"
	"testing"
)

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  int
	}{{nil, 1}, {[]int{0}, 0}, {[]int{3}, 3}, {[]int{2, 0, 5}, 0}, {[]int{2, 3, 4}, 24}} {
		if got := Elements(c.shape...); got != c.want {
			t.Errorf("Elements(%v) = %d, want %d", c.shape, got, c.want)
		}
	}
}

func TestViewsShareMemory(t *testing.T) {
	base := Of(F32, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 3, 4)
	for _, c := range []struct {
		name  string
		view  *Tensor
		shape string
		first int
	}{
		{"view", base.View(2, 6), "float32[2 6]", 0},
		{"part", base.Part(5, 11, 3, 2), "float32[3 2]", 5},
		{"flat", base.Flat(2, 3), "float32[1]", 2},
		{"rows", base.Rows(1, 3), "float32[2 4]", 4},
		{"part of a part", base.Rows(1, 3).Flat(3, 6), "float32[3]", 7},
		{"empty", base.Flat(12, 12), "float32[0]", -1},
	} {
		if got := c.view.String(); got != c.shape {
			t.Errorf("%s is %s, want %s", c.name, got, c.shape)
		}
		if c.first < 0 {
			continue
		}
		if &c.view.F32()[0] != &base.F32()[c.first] {
			t.Errorf("%s does not start at element %d", c.name, c.first)
		}
		if s := c.view.F32(); cap(s) != len(s) && c.view.Len() < base.Len() {
			t.Errorf("%s can be appended to: the next part would be overwritten", c.name)
		}
	}
}

func TestViewOutlivesNothing(t *testing.T) {
	h := NewHeap(nil, true)
	base := h.New(Activations, F64, 4)
	part := base.Flat(1, 3)
	base.F64()[1] = 7
	part.Retain()
	base.Release()
	if got := part.F64()[0]; got != 7 {
		t.Fatalf("a retained view reads %v after its base's release, want 7", got)
	}
	part.Release()
	if got := part.F64()[0]; got == got {
		t.Fatalf("memory given back reads %v, want NaN", got)
	}
}

func TestMisusePanics(t *testing.T) {
	h := NewHeap(nil, false)
	gone := h.New(Workspace, F32, 2)
	gone.Release()
	x := Of(F32, make([]float32, 6), 2, 3)
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"release twice", gone.Release, "released more often than retained"},
		{"retain after release", func() { gone.Retain() }, "retained after its last release"},
		{"view of another length", func() { x.View(4) }, "view [4] of [2 3]"},
		{"part out of range", func() { x.Part(4, 7, 3) }, "part 4..7"},
		{"part of wrong shape", func() { x.Part(0, 4, 3) }, "part 0..4 as [3]"},
		{"negative part", func() { x.Flat(-1, 2) }, "part -1..2"},
		{"other type", func() { x.F64() }, "float32[2 3] holds []float32"},
		{"of another length", func() { Of(I32, make([]int32, 5), 2, 3) }, "5 elements for shape [2 3]"},
		{"negative shape", func() { h.New(Workspace, F32, -1) }, "shape [-1]"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("%s: panic %q, want %q in it", c.name, got, c.want)
				}
			}()
			c.do()
		}()
	}
}

func TestUnownedMemoryIsNotCounted(t *testing.T) {
	x := Of(F32, make([]float32, 1), 1)
	x.Release()
	x.Release()
	x.Retain().Release()
	(*Tensor)(nil).Release()
}

func TestBytes(t *testing.T) {
	h := NewHeap(nil, false)
	for d, want := range map[DType]int64{F32: 24, F64: 48, I32: 24, BF16: 12} {
		x := h.New(Workspace, d, 2, 3)
		if x.Bytes() != want {
			t.Errorf("%v has %d bytes, want %d", x, x.Bytes(), want)
		}
		x.Release()
	}
}

func ExampleTensor_Rows() {
	x := Of(F32, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	fmt.Println(x.Rows(1, 3), x.Rows(1, 3).F32())
	// Output: float32[2 2] [3 4 5 6]
}
