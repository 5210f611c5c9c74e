package local_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"triax/comm"
	"triax/comm/commtest"
	"triax/comm/local"
	"triax/tensor"
)

// play joins all ranks of a world in one group and runs f on each.
func play(t *testing.T, size int, f func(ctx context.Context, rank int, m comm.Collective) error) {
	t.Helper()
	members := make([]int, size)
	for i := range members {
		members[i] = i
	}
	for rank, err := range commtest.Play(t.Context(), open()(t, size), func(ctx context.Context, r commtest.Rank) error {
		m, err := r.Wire.Join(ctx, "all", members)
		if err != nil {
			return err
		}
		return f(ctx, r.Wire.Rank(), m)
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestOrderOfPlaces: a sum is ((x0 + x1) + x2) + ... to the bit, in vector blocks and in the rest alike, and the same whether
// all-reduced or reduce-scattered.
func TestOrderOfPlaces(t *testing.T) {
	for size := 2; size <= 5; size++ {
		for _, part := range []int{1, 31, 33, 1000, 5003, 40007} {
			n := size * part
			inputs := make([][]float32, size)
			want := make([]float32, n)
			rng := rand.New(rand.NewPCG(uint64(size), uint64(part)))
			for p := range inputs {
				inputs[p] = make([]float32, n)
				for i := range inputs[p] {
					inputs[p][i] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(6))))
					want[i] += inputs[p][i]
				}
			}
			play(t, size, func(ctx context.Context, rank int, m comm.Collective) error {
				x := append([]float32(nil), inputs[rank]...)
				dst := make([]float32, part)
				if _, err := m.ReduceScatter(ctx, tensor.Of(tensor.F32, dst, part), tensor.Of(tensor.F32, x, n)); err != nil {
					return err
				}
				if _, err := m.AllReduce(ctx, tensor.Of(tensor.F32, x, n), comm.Sum); err != nil {
					return err
				}
				sameFloats(t, "all-reduce", x, want)
				sameFloats(t, "reduce-scatter", dst, want[rank*part:(rank+1)*part])
				return nil
			})
		}
	}
}

func sameFloats(t *testing.T, what string, got, want []float32) {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// TestMaximumKeepsNaN: a NaN on any member is not lost.
func TestMaximumKeepsNaN(t *testing.T) {
	nan := math.NaN()
	rows := [][]float64{{1, nan, 3, -5, math.Inf(-1)}, {2, 2, nan, -7, math.Inf(-1)}, {0, 9, 4, -6, math.Inf(-1)}}
	want := []float64{2, nan, nan, -5, math.Inf(-1)}
	play(t, 3, func(ctx context.Context, rank int, m comm.Collective) error {
		x := append([]float64(nil), rows[rank]...)
		_, err := m.AllReduce(ctx, tensor.Of(tensor.F64, x, 5), comm.Max)
		for i, w := range want {
			if x[i] != w && !(math.IsNaN(x[i]) && math.IsNaN(w)) {
				t.Errorf("rank %d: element %d is %v, want %v", rank, i, x[i], w)
			}
		}
		return err
	})
}

// TestBF16RoundsOnce: 256 + 1 + 1 + 1 + 1 is 260 in float32; bfloat16, with 8 bits, would stay at 256 if it rounded every sum. Ties go
// to even, and NaN stays NaN.
func TestBF16RoundsOnce(t *testing.T) {
	bits := func(f float32) uint16 { return uint16(math.Float32bits(f) >> 16) }
	play(t, 5, func(ctx context.Context, rank int, m comm.Collective) error {
		x := []uint16{bits(1), bits(0), bits(0), 0x7f81}
		if rank == 0 {
			x[0] = bits(256)
		}
		switch rank { // 256 + 1 lies between 256 and 258, 258 + 1 between 258 and 260
		case 1:
			x[1], x[2] = bits(256), bits(258)
		case 2:
			x[1], x[2] = bits(1), bits(1)
		}
		if _, err := m.AllReduce(ctx, tensor.Of(tensor.BF16, x, 4), comm.Sum); err != nil {
			return err
		}
		for i, want := range []float32{260, 256, 260} {
			if x[i] != bits(want) {
				t.Errorf("rank %d: element %d is %#x, want %v", rank, i, x[i], want)
			}
		}
		if f := math.Float32frombits(uint32(x[3]) << 16); f == f {
			t.Errorf("rank %d: the sum of NaN is %v", rank, f)
		}
		return nil
	})
}

// TestWholeNumbersMove: token numbers can be gathered, broadcast and exchanged, but not summed.
func TestWholeNumbersMove(t *testing.T) {
	play(t, 3, func(ctx context.Context, rank int, m comm.Collective) error {
		own, whole := []int32{int32(rank)}, make([]int32, 3)
		if _, err := m.AllGather(ctx, tensor.Of(tensor.I32, whole, 3), tensor.Of(tensor.I32, own, 1)); err != nil {
			return err
		}
		for i, x := range whole {
			if int(x) != i {
				t.Errorf("rank %d gathered %v", rank, whole)
			}
		}
		if _, err := m.AllReduce(ctx, tensor.Of(tensor.I32, own, 1), comm.Sum); err == nil {
			t.Error("summed int32")
		}
		return nil
	})
}

// TestNothingAllocated: collectives of a settled run make no garbage.
func TestNothingAllocated(t *testing.T) {
	const size, rounds = 2, 50
	w := local.New(size)
	defer w.Close()
	var members [size]comm.Collective
	var whole, part [size]*tensor.Tensor
	for i := range members {
		var err error
		if members[i], err = w.Rank(i, nil).Join(t.Context(), "all", []int{0, 1}); err != nil {
			t.Fatal(err)
		}
		whole[i], part[i] = tensor.Of(tensor.F32, make([]float32, 100), 100), tensor.Of(tensor.F32, make([]float32, 50), 50)
	}
	ctx := t.Context()
	round := func(i int) error {
		if _, err := members[i].AllReduce(ctx, whole[i], comm.Sum); err != nil {
			return err
		}
		if _, err := members[i].ReduceScatter(ctx, part[i], whole[i]); err != nil {
			return err
		}
		_, err := members[i].AllGather(ctx, whole[i], part[i])
		return err
	}
	ended := make(chan error)
	go func() {
		for range rounds + 1 { // AllocsPerRun warms up with one
			if err := round(1); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	allocs := testing.AllocsPerRun(rounds, func() {
		if err := round(0); err != nil {
			t.Error(err)
		}
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if allocs > 0 {
		t.Errorf("%v allocations a round", allocs)
	}
}
