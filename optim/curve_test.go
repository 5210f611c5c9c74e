package optim

import (
	"fmt"
	"math"
	"testing"
)

func TestCurves(t *testing.T) {
	tests := []struct {
		curve Curve
		want  map[int]float64
	}{
		{Curve{"constant", 1, 0, 0, 10}, map[int]float64{1: 1, 10: 1, 99: 1}},
		{Curve{"constant", 1, 0, 4, 10}, map[int]float64{1: 0.25, 2: 0.5, 4: 1, 5: 1}},
		{Curve{"linear", 1, 0.2, 2, 10}, map[int]float64{1: 0.5, 2: 1, 6: 0.6, 10: 0.2, 11: 0.2}},
		{Curve{"linear", 1, 0, 0, 5}, map[int]float64{1: 1, 3: 0.5, 5: 0}},
		{Curve{"cosine", 2, 1, 2, 10}, map[int]float64{1: 1, 2: 2, 4: 1 + (1+math.Sqrt2/2)/2, 6: 1.5, 8: 1 + (1-math.Sqrt2/2)/2, 10: 1, 50: 1}},
		{Curve{"cosine", 1, 0.5, 0, 1}, map[int]float64{1: 1, 2: 0.5}},
		{Curve{"linear", 1, 0, 10, 10}, map[int]float64{9: 0.9, 10: 1}},
	}
	for _, test := range tests {
		for step, want := range test.want {
			if got := test.curve.At(step); math.Abs(got-want) > 1e-15 {
				t.Errorf("%v: At(%d) = %v, want %v", test.curve, step, got, want)
			}
		}
	}
}

// After warm-up no curve rises, and none leaves the range between floor and peak.
func TestCurvesFall(t *testing.T) {
	for _, shape := range Curves {
		for _, warmup := range []int{0, 1, 7} {
			c := NewCurve(Config{LR: 3e-4, MinLR: 3e-5, Curve: shape, Warmup: warmup}, 50)
			for step := max(warmup, 1); step < 60; step++ {
				if a, b := c.At(step), c.At(step+1); b > a || b < c.Floor || a > c.Peak {
					t.Errorf("%v: %v then %v at step %d", c, a, b, step)
				}
			}
		}
	}
}

func TestStepsCountFromOne(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("step 0 has a rate")
		}
	}()
	Curve{Shape: "constant", Peak: 1, Steps: 1}.At(0)
}

func TestClipFactor(t *testing.T) {
	for _, test := range []struct{ norm, bound, want float64 }{
		{2, 1, 0.5}, {0.5, 1, 1}, {1, 1, 1}, {5, 0, 1}, {0, 1, 1}, {4, 1e-3, 2.5e-4},
	} {
		if got := ClipFactor(test.norm, test.bound); got != test.want {
			t.Errorf("ClipFactor(%v, %v) = %v, want %v", test.norm, test.bound, got, test.want)
		}
	}
}

func ExampleCurve_At() {
	c := NewCurve(Config{LR: 1, MinLR: 0.1, Curve: "cosine", Warmup: 2}, 6)
	for step := 1; step <= 6; step++ {
		fmt.Printf("%.3f ", c.At(step))
	}
	// Output: 0.500 1.000 0.868 0.550 0.232 0.100
}
