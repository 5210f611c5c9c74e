package commtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"triax/comm"
	"triax/tensor"
)

// whole is a small whole number that differs from place to place and element to element; sums over a group are exact even in
// bfloat16.
func whole(place, i int) float64 { return float64((7*place + 3*i) % 11) }

func collectives(t *testing.T, open Open, dtypes []tensor.DType) {
	for size := 2; size <= 5; size++ {
		t.Run(fmt.Sprintf("ranks=%d", size), func(t *testing.T) {
			must(t, open(t, size), func(ctx context.Context, r Rank) error {
				m, err := all(ctx, r)
				if err != nil {
					return err
				}
				for _, dtype := range dtypes {
					for _, n := range []int{0, 1, size - 1, size, size + 1, 1000, 9001} {
						c := check{r, m, r.Wire.Rank(), size, dtype}
						if err := c.everything(ctx, n); err != nil {
							return fmt.Errorf("%v, %d elements: %w", dtype, n, err)
						}
					}
				}
				return nil
			})
		})
	}
}

// check is one member of a group that checks all kinds of calls.
type check struct {
	Rank
	comm.Collective
	place, size int
	dtype       tensor.DType
}

// own is this member's tensor of whole numbers.
func (c check) own(n int) *tensor.Tensor {
	return c.numbers(c.dtype, n, func(i int) float64 { return whole(c.place, i) })
}

// fresh is a tensor to be overwritten: it holds NaN.
func (c check) fresh(n int) *tensor.Tensor {
	return c.numbers(c.dtype, n, func(int) float64 { return math.NaN() })
}

func (c check) everything(ctx context.Context, n int) error {
	return errors.Join(c.reductions(ctx, n), c.copies(ctx, n))
}

func (c check) reductions(ctx context.Context, n int) error {
	sum := func(i int) (s float64) {
		for p := range c.size {
			s += whole(p, i)
		}
		return s
	}
	largest := func(i int) (m float64) {
		for p := range c.size {
			m = max(m, whole(p, i))
		}
		return m
	}
	x, y := c.own(n), c.own(n)
	src, dst := c.own(c.size*n), c.fresh(n)
	defer release(x, y, src, dst)
	_, err := c.AllReduce(ctx, x, comm.Sum)
	if err != nil {
		return err
	}
	if _, err := c.AllReduce(ctx, y, comm.Max); err != nil {
		return err
	}
	if _, err := c.ReduceScatter(ctx, dst, src); err != nil {
		return err
	}
	return errors.Join(
		c.equal("sum", x, sum),
		c.equal("maximum", y, largest),
		c.equal("reduce-scatter", dst, func(i int) float64 { return sum(c.place*n + i) }),
		c.equal("source of reduce-scatter", src, func(i int) float64 { return whole(c.place, i) }),
	)
}

func (c check) copies(ctx context.Context, n int) error {
	part, gathered := c.own(n), c.fresh(c.size*n)
	out, exchanged := c.own(c.size*n), c.fresh(c.size*n)
	defer release(part, gathered, out, exchanged)
	if _, err := c.AllGather(ctx, gathered, part); err != nil {
		return err
	}
	if _, err := c.AllToAll(ctx, exchanged, out); err != nil {
		return err
	}
	err := errors.Join(
		c.equal("all-gather", gathered, func(i int) float64 { return whole(i/n, i%n) }),
		c.equal("all-to-all", exchanged, func(i int) float64 { return whole(i/n, c.place*n+i%n) }),
	)
	for root := range c.size {
		x := c.own(n)
		if _, e := c.Broadcast(ctx, x, root); e != nil {
			return e
		}
		err = errors.Join(err, c.equal("broadcast", x, func(i int) float64 { return whole(root, i) }))
		x.Release()
	}
	if _, e := c.Barrier(ctx); e != nil {
		return e
	}
	return err
}

func release(ts ...*tensor.Tensor) {
	for _, t := range ts {
		t.Release()
	}
}

// sameBits: sums of fractions depend on the order of adding, so members that add in orders of their own drift apart.
func sameBits(t *testing.T, open Open, dtypes []tensor.DType) {
	const n, size = 5000, 4
	for _, dtype := range dtypes {
		must(t, open(t, size), func(ctx context.Context, r Rank) error {
			m, err := all(ctx, r)
			if err != nil {
				return err
			}
			place := r.Wire.Rank()
			x := r.numbers(dtype, n, func(i int) float64 { return math.Sin(float64(1+place*n+i)) * math.Pow(10, float64(place)) })
			defer x.Release()
			if _, err = m.AllReduce(ctx, x, comm.Sum); err != nil {
				return err
			}
			own := r.values(x)
			if _, err := m.Broadcast(ctx, x, 0); err != nil {
				return err
			}
			for i, first := range r.values(x) {
				if own[i] != first {
					return fmt.Errorf("%v: element %d of the sum is %v at place 0 and %v at place %d", dtype, i, first, own[i], place)
				}
			}
			return nil
		})
	}
}

// inPlaceGather: src may be the member's own place in dst.
func inPlaceGather(t *testing.T, open Open) {
	const n, size = 777, 3
	must(t, open(t, size), func(ctx context.Context, r Rank) error {
		m, err := all(ctx, r)
		if err != nil {
			return err
		}
		place := r.Wire.Rank()
		dst := r.numbers(tensor.F32, size*n, func(i int) float64 {
			if i/n != place {
				return math.NaN()
			}
			return whole(place, i%n)
		})
		defer dst.Release()
		if _, err := m.AllGather(ctx, dst, dst.Flat(place*n, (place+1)*n)); err != nil {
			return err
		}
		return r.equal("all-gather", dst, func(i int) float64 { return whole(i/n, i%n) })
	})
}
