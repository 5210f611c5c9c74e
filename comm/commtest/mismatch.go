package commtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"triax/comm"
	"triax/tensor"
)

// mismatch: members that call different things all get an error, that names the group and what each called; the group
// can be used again.
func mismatch(t *testing.T, open Open) {
	type called func(ctx context.Context, r Rank, m comm.Collective) error
	reduce := func(dtype tensor.DType, n int, op comm.Op) called {
		return func(ctx context.Context, r Rank, m comm.Collective) error {
			x := r.numbers(dtype, n, func(int) float64 { return 1 })
			defer x.Release()
			_, err := m.AllReduce(ctx, x, op)
			return err
		}
	}
	broadcast := func(root int) called {
		return func(ctx context.Context, r Rank, m comm.Collective) error {
			x := r.numbers(tensor.F32, 12, func(int) float64 { return 1 })
			defer x.Release()
			_, err := m.Broadcast(ctx, x, root)
			return err
		}
	}
	gather := func(n, whole int) called {
		return func(ctx context.Context, r Rank, m comm.Collective) error {
			x, y := r.numbers(tensor.F32, n, func(int) float64 { return 1 }), r.numbers(tensor.F32, whole, func(int) float64 { return 1 })
			defer release(x, y)
			_, err := m.AllGather(ctx, y, x)
			return err
		}
	}
	barrier := func(ctx context.Context, r Rank, m comm.Collective) error { _, err := m.Barrier(ctx); return err }
	for _, c := range []struct {
		name  string
		odd   called // what rank 1 calls
		usual called // what all others call
		say   []string
	}{
		{"kind", gather(12, 36), reduce(tensor.F32, 12, comm.Sum), []string{"all_gather", "all_reduce"}},
		{"barrier", barrier, reduce(tensor.F32, 12, comm.Sum), []string{"barrier", "all_reduce"}},
		{"length", reduce(tensor.F32, 13, comm.Sum), reduce(tensor.F32, 12, comm.Sum), []string{"13", "12"}},
		{"type", reduce(tensor.F64, 12, comm.Sum), reduce(tensor.F32, 12, comm.Sum), []string{"float64", "float32"}},
		{"operation", reduce(tensor.F32, 12, comm.Max), reduce(tensor.F32, 12, comm.Sum), []string{"max", "all_reduce"}},
		{"root", broadcast(1), broadcast(2), []string{"place 1", "place 2"}},
		{"result", gather(12, 35), gather(12, 36), []string{"all_gather", "35"}},
		{"place", broadcast(3), broadcast(3), []string{"place 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, open(t, 3), func(ctx context.Context, r Rank) error {
				m, err := r.Wire.Join(ctx, "the odd one", upTo(3))
				if err != nil {
					return err
				}
				call := c.usual
				if r.Wire.Rank() == 1 {
					call = c.odd
				}
				err = call(ctx, r, m)
				if err == nil {
					return fmt.Errorf("no error")
				}
				for _, part := range append(c.say, "the odd one", "rank 1") {
					if !strings.Contains(strings.ToLower(err.Error()), part) {
						return fmt.Errorf("the error does not say %q: %w", part, err)
					}
				}
				return check{r, m, r.Wire.Rank(), 3, tensor.F32}.everything(ctx, 5)
			})
		})
	}
}
