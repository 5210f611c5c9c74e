package schedule

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func equal(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// TestB73BalancedCut: five equal layers on four stages leave none empty.
func TestB73BalancedCut(t *testing.T) {
	for _, c := range []struct {
		costs         []float64
		before, after float64
		stages        int
		want          []int
	}{
		{equal(5), 0, 0, 4, []int{2, 1, 1, 1}},
		{equal(30), 0, 0, 4, []int{8, 8, 8, 6}},
		{equal(8), 0, 2, 4, []int{3, 3, 1, 1}},
		{equal(8), 1, 1, 2, []int{4, 4}},
		{[]float64{1, 1, 1, 5}, 0, 0, 2, []int{3, 1}},
		{equal(2), 0, 0, 3, []int{1, 1, 0}},
	} {
		if got := CutByCost(c.costs, c.before, c.after, c.stages); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, ends %v %v, %d stages: %v, want %v", c.costs, c.before, c.after, c.stages, got, c.want)
		}
	}
}

// TestCutByCostIsBest: no other cut of random costs has a cheaper dearest stage.
func TestCutByCostIsBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n, stages := 1+rng.IntN(8), 1+rng.IntN(4)
		if n < stages {
			continue
		}
		costs := make([]float64, n)
		for i := range costs {
			costs[i] = float64(1 + rng.IntN(5))
		}
		before, after := float64(rng.IntN(3)), float64(rng.IntN(6))
		dearest := func(cut []int) float64 {
			top, at := 0.0, 0
			for s, k := range cut {
				c := 0.0
				if s == 0 {
					c += before
				}
				if s == stages-1 {
					c += after
				}
				for _, x := range costs[at : at+k] {
					c += x
				}
				at += k
				top = math.Max(top, c)
			}
			return top
		}
		best := math.Inf(1)
		var try func(cut []int, left int)
		try = func(cut []int, left int) {
			if len(cut) == stages-1 {
				if left > 0 {
					best = math.Min(best, dearest(append(cut[:len(cut):len(cut)], left)))
				}
				return
			}
			for k := 1; k < left; k++ {
				try(append(cut[:len(cut):len(cut)], k), left-k)
			}
		}
		try(nil, n)
		if got := dearest(CutByCost(costs, before, after, stages)); got != best {
			t.Fatalf("%v, ends %v %v, %d stages: %v costs %v, best %v", costs, before, after, stages, CutByCost(costs, before, after, stages), got, best)
		}
	}
}

// TestB72EveryLayerIsKept: 30 layers on 4 stages are 30 layers.
func TestB72EveryLayerIsKept(t *testing.T) {
	for layers := 1; layers <= 40; layers++ {
		for stages := 1; stages <= 9; stages++ {
			for _, cut := range [][]int{CutEven(layers, stages), CutByCost(equal(layers), 0.5, 2, stages)} {
				sum := 0
				for _, n := range cut {
					sum += n
				}
				if sum != layers || len(cut) != stages {
					t.Errorf("%d layers over %d stages: %v", layers, stages, cut)
				}
			}
		}
	}
}
