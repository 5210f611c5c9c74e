package commtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"triax/comm"
	"triax/tensor"
)

// subgroups: groups of some ranks, in orders that are not those of the ranks. The order is that of the places.
func subgroups(t *testing.T, open Open) {
	groups := [][]int{{0, 1}, {2, 3, 4}, {4, 0}, {3, 1, 2}, {4, 3, 2, 1, 0}, {2, 0, 4, 1}}
	must(t, open(t, 5), func(ctx context.Context, r Rank) error {
		for k, ranks := range groups {
			place := slices.Index(ranks, r.Wire.Rank())
			if place < 0 {
				continue
			}
			m, err := r.Wire.Join(ctx, fmt.Sprint("sub ", k), ranks)
			if err != nil {
				return err
			}
			c := check{r, m, place, len(ranks), tensor.F64}
			if err := c.everything(ctx, 101); err != nil {
				return fmt.Errorf("ranks %v: %w", ranks, err)
			}
		}
		return nil
	})
}

// groupsOfOneOrder: four ranks with 1, 2, 3, 4 in two columns sum to 4 and 6. Were a rank to take another column's group
// for its own, because groups are told apart by when they were made, both sums would be 5.
func groupsOfOneOrder(t *testing.T, open Open) {
	must(t, open(t, 4), func(ctx context.Context, r Rank) error {
		rank := r.Wire.Rank()
		row := []int{rank / 2 * 2, rank/2*2 + 1}
		column := []int{rank % 2, rank%2 + 2}
		x := r.numbers(tensor.F32, 1, func(int) float64 { return float64(rank + 1) })
		y := r.numbers(tensor.F32, 1, func(int) float64 { return float64(rank + 1) })
		defer release(x, y)
		a, err := r.Wire.Join(ctx, fmt.Sprint("row ", row), row)
		if err != nil {
			return err
		}
		b, err := r.Wire.Join(ctx, fmt.Sprint("column ", column), column)
		if err != nil {
			return err
		}
		if _, err := b.AllReduce(ctx, x, comm.Sum); err != nil {
			return err
		}
		if _, err := a.AllReduce(ctx, y, comm.Sum); err != nil {
			return err
		}
		if err := r.equal("column", x, func(int) float64 { return []float64{4, 6}[rank%2] }); err != nil {
			return err
		}
		return r.equal("row", y, func(int) float64 { return []float64{3, 7}[rank/2] })
	})
}

// concurrentGroups: a rank's row and column work at the same time, from two goroutines, as with communication overlapped.
func concurrentGroups(t *testing.T, open Open) {
	must(t, open(t, 4), func(ctx context.Context, r Rank) error {
		rank := r.Wire.Rank()
		var members [2]comm.Collective
		places := [2]int{rank % 2, rank / 2}
		for i, ranks := range [][]int{{rank / 2 * 2, rank/2*2 + 1}, {rank % 2, rank%2 + 2}} {
			var err error
			if members[i], err = r.Wire.Join(ctx, fmt.Sprint(i, ranks), ranks); err != nil {
				return err
			}
		}
		var errs [2]error
		var both sync.WaitGroup
		for i := range members {
			both.Go(func() {
				c := check{r, members[i], places[i], 2, tensor.F32}
				for round := 0; round < 30 && errs[i] == nil; round++ {
					errs[i] = c.everything(ctx, 50+round)
				}
			})
		}
		both.Wait()
		if errs[0] != nil {
			return errs[0]
		}
		return errs[1]
	})
}

// join: the wrong members are an error, not a hang.
func join(t *testing.T, open Open) {
	must(t, open(t, 2), func(ctx context.Context, r Rank) error {
		other := 1 - r.Wire.Rank()
		if _, err := r.Wire.Join(ctx, fmt.Sprint("not mine ", other), []int{other}); err == nil {
			return fmt.Errorf("joined a group of which it is no member")
		}
		if _, err := r.Wire.Join(ctx, fmt.Sprint("twice ", r.Wire.Rank()), []int{r.Wire.Rank(), r.Wire.Rank()}); err == nil {
			return fmt.Errorf("joined a group with a rank in it twice")
		}
		return nil
	})
}
