package tensor

import "testing"

func TestDTypes(t *testing.T) {
	for _, c := range []struct {
		d    DType
		size int
		name string
	}{{F32, 4, "float32"}, {F64, 8, "float64"}, {I32, 4, "int32"}, {BF16, 2, "bfloat16"}, {9, 4, "dtype(9)"}} {
		if c.d.Size() != c.size || c.d.String() != c.name {
			t.Errorf("%v has size %d, want %s of %d", c.d, c.d.Size(), c.name, c.size)
		}
	}
	for _, d := range []DType{F32, F64, I32} {
		if d.Accum() != d {
			t.Errorf("sums of %v are %v", d, d.Accum())
		}
	}
	if BF16.Accum() != F32 {
		t.Errorf("sums of bfloat16 are %v", BF16.Accum())
	}
	for k := range Kind(NumKinds) {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}
