package comm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"triax/comm"
	"triax/comm/commtest"
	"triax/tensor"
)

func f64(values ...float64) *tensor.Tensor { return tensor.Of(tensor.F64, values, len(values)) }

// copies is as much of a device as a group needs.
type copies struct{ tensor.Device }

func (copies) Copy(dst, src *tensor.Tensor) { copy(dst.F64(), src.F64()) }

// TestGroupOfOne: a rank alone copies, and books nothing.
func TestGroupOfOne(t *testing.T) {
	ledger := &comm.Ledger{}
	dev := copies{}
	g, err := comm.NewGroup(t.Context(), world(t, 1)[0].Wire, "dp [0]", "dp", []int{0}, ledger)
	if err != nil {
		t.Fatal(err)
	}
	src := f64(1, 2, 3)
	for name, f := range map[string]func(dst *tensor.Tensor) error{
		"reduce-scatter": func(dst *tensor.Tensor) error { return g.ReduceScatter(t.Context(), dev, dst, src) },
		"all-gather":     func(dst *tensor.Tensor) error { return g.AllGather(t.Context(), dev, dst, src) },
		"all-to-all":     func(dst *tensor.Tensor) error { return g.AllToAll(t.Context(), dev, dst, src) },
		"all-reduce": func(dst *tensor.Tensor) error {
			copy(dst.F64(), src.F64())
			return errors.Join(g.AllReduce(t.Context(), dst, comm.Sum), g.Broadcast(t.Context(), dst, 0), g.Barrier(t.Context()))
		},
	} {
		dst := f64(0, 0, 0)
		if err := f(dst); err != nil {
			t.Fatal(err)
		}
		for i, x := range dst.F64() {
			if x != float64(i+1) {
				t.Errorf("%s: %v", name, dst.F64())
				break
			}
		}
	}
	if e := ledger.Entries(); len(e) != 0 {
		t.Errorf("booked %v", e)
	}
}

// TestGroupBooks: every call is booked once, with the bytes of the whole tensor.
func TestGroupBooks(t *testing.T) {
	var ledgers [2]comm.Ledger
	play(t, world(t, 2), func(ctx context.Context, r commtest.Rank) error {
		rank := r.Wire.Rank()
		g, err := comm.NewGroup(ctx, r.Wire, "tp [1 0]", "tp", []int{1, 0}, &ledgers[rank])
		if err != nil {
			return err
		}
		if g.Place() != 1-rank || g.Size() != 2 || g.String() != "tp [1 0]" {
			t.Errorf("rank %d: place %d of %d in %v", rank, g.Place(), g.Size(), g)
		}
		part, whole := f64(1, 2, 3), f64(1, 2, 3, 4, 5, 6)
		return errors.Join(
			g.AllReduce(ctx, part, comm.Sum), g.AllReduce(ctx, part, comm.Max),
			g.ReduceScatter(ctx, nil, part, whole), g.AllGather(ctx, nil, whole, part),
			g.AllToAll(ctx, nil, f64(0, 0), f64(1, 2)), g.Broadcast(ctx, part, 1), g.Barrier(ctx))
	})
	want := []string{
		"tp all_gather: 1 calls, 48 bytes", "tp all_reduce: 2 calls, 48 bytes", "tp all_to_all: 1 calls, 16 bytes",
		"tp barrier: 1 calls, 0 bytes", "tp broadcast: 1 calls, 24 bytes", "tp reduce_scatter: 1 calls, 48 bytes",
	}
	for rank := range ledgers {
		var got []string
		for _, e := range ledgers[rank].Entries() {
			got = append(got, e.String())
		}
		if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
			t.Errorf("rank %d booked\n%s\nwant\n%s", rank, a, b)
		}
	}
}

// TestGroupErrors: errors name the call, its size and the group; wrong shapes panic with them.
func TestGroupErrors(t *testing.T) {
	ranks := world(t, 2)
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("rank 1: out of paper")
	stop(why)
	g, err := comm.NewGroup(ctx, ranks[0].Wire, "dp [0 1]", "dp", []int{0, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = g.AllReduce(ctx, f64(1, 2), comm.Sum)
	if want := "all_reduce of 16 bytes on dp [0 1]: rank 1: out of paper"; !errors.Is(err, why) || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := comm.NewGroup(t.Context(), ranks[0].Wire, "pp [1]", "pp", []int{1}, nil); err == nil {
		t.Error("joined a group of others")
	}
	for want, f := range map[string]func() error{
		"reduce-scatter float64[4] → float64[3] over 2 ranks": func() error { return g.ReduceScatter(ctx, nil, f64(1, 2, 3), f64(1, 2, 3, 4)) },
		"all-gather float64[3] → float64[4] over 2 ranks":     func() error { return g.AllGather(ctx, nil, f64(1, 2, 3, 4), f64(1, 2, 3)) },
		"all-to-all float64[3] → float64[3] over 2 ranks":     func() error { return g.AllToAll(ctx, nil, f64(1, 2, 3), f64(1, 2, 3)) },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(v.(string), want) {
					t.Errorf("panic %v, want %q", v, want)
				}
			}()
			f()
		}()
	}
}
