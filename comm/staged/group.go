package staged

import (
	"context"
	"time"

	"triax/comm"
	"triax/tensor"
)

// group is one rank's end of a group. It implements comm.Collective.
type group struct {
	*Transport
	inner comm.Collective
	place int
}

// call runs f on copies of dst and src, or of one tensor where they are the same: what is read is fetched before, what is written is placed after. A nil
// tensor is the inner transport's to refuse.
func (g *group) call(dst, src *tensor.Tensor, reads, writes bool, f func(dst, src *tensor.Tensor) (comm.Times, error)) (comm.Times, error) {
	if dst == nil || src == nil {
		return f(dst, src)
	}
	start := time.Now()
	from := g.like(src)
	defer from.Release()
	to := from
	if dst != src {
		to = g.like(dst)
		defer to.Release()
	}
	if reads {
		if err := g.mem.Fetch(from, src); err != nil {
			return comm.Times{}, err
		}
	}
	fetched := time.Now()
	times, err := f(to, from)
	if err != nil {
		return times, err
	}
	done := time.Now()
	if writes {
		err = g.mem.Place(dst, to)
	}
	times.Move += fetched.Sub(start) + time.Since(done)
	return times, err
}

func (g *group) AllReduce(ctx context.Context, t *tensor.Tensor, op comm.Op) (comm.Times, error) {
	return g.call(t, t, true, true, func(t, _ *tensor.Tensor) (comm.Times, error) { return g.inner.AllReduce(ctx, t, op) })
}

func (g *group) ReduceScatter(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.call(dst, src, true, true, func(dst, src *tensor.Tensor) (comm.Times, error) { return g.inner.ReduceScatter(ctx, dst, src) })
}

func (g *group) AllGather(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.call(dst, src, true, true, func(dst, src *tensor.Tensor) (comm.Times, error) { return g.inner.AllGather(ctx, dst, src) })
}

func (g *group) Broadcast(ctx context.Context, t *tensor.Tensor, root int) (comm.Times, error) {
	mine := root == g.place
	return g.call(t, t, mine, !mine, func(t, _ *tensor.Tensor) (comm.Times, error) { return g.inner.Broadcast(ctx, t, root) })
}

func (g *group) AllToAll(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.call(dst, src, true, true, func(dst, src *tensor.Tensor) (comm.Times, error) { return g.inner.AllToAll(ctx, dst, src) })
}

func (g *group) Barrier(ctx context.Context) (comm.Times, error) { return g.inner.Barrier(ctx) }
