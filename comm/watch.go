package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"triax/tensor"
)

// Watched is t, with a limit on how long a call may take: its waiting for peers and its data. missing is asked, when the limit is reached, what has
// become of the ranks that the call waits for; its answer is the error.
func Watched(t Transport, limit time.Duration, missing func(ranks []int) string) Transport {
	return &watched{t, limit, missing}
}

type watched struct {
	Transport
	limit   time.Duration
	missing func(ranks []int) string
}

var errLimit = errors.New("limit reached")

// within runs one call under the limit.
func (t *watched) within(ctx context.Context, ranks []int, f func(ctx context.Context) (Times, error)) (Times, error) {
	limited, cancel := context.WithTimeoutCause(ctx, t.limit, errLimit)
	defer cancel()
	times, err := f(limited)
	if errors.Is(err, errLimit) && ctx.Err() == nil {
		err = fmt.Errorf("not done after %v (train.timeout): %s", t.limit, t.missing(ranks))
	}
	return times, err
}

func (t *watched) Join(ctx context.Context, name string, ranks []int) (Collective, error) {
	others := slices.DeleteFunc(slices.Clone(ranks), func(r int) bool { return r == t.Rank() })
	var c Collective
	_, err := t.within(ctx, others, func(ctx context.Context) (_ Times, err error) {
		c, err = t.Transport.Join(ctx, name, ranks)
		return Times{}, err
	})
	if err != nil {
		return nil, err
	}
	return &watchedGroup{c, t, others}, nil
}

// Send's limit is on the time until the memory is free again.
func (t *watched) Send(ctx context.Context, to int, tag Tag, x *tensor.Tensor) *Pending {
	sent := t.Transport.Send(ctx, to, tag, x)
	select {
	case <-sent.done:
		return sent
	default:
	}
	p, end := NewPending()
	go func() {
		end(t.within(ctx, []int{to}, sent.Wait))
	}()
	return p
}

func (t *watched) Recv(ctx context.Context, from int, tag Tag, want Spec) (x *tensor.Tensor, times Times, err error) {
	times, err = t.within(ctx, []int{from}, func(ctx context.Context) (times Times, err error) {
		x, times, err = t.Transport.Recv(ctx, from, tag, want)
		return times, err
	})
	return x, times, err
}

type watchedGroup struct {
	Collective
	t      *watched
	others []int
}

func (g *watchedGroup) AllReduce(ctx context.Context, t *tensor.Tensor, op Op) (Times, error) {
	return g.t.within(ctx, g.others, func(ctx context.Context) (Times, error) { return g.Collective.AllReduce(ctx, t, op) })
}

func (g *watchedGroup) ReduceScatter(ctx context.Context, dst, src *tensor.Tensor) (Times, error) {
	return g.t.within(ctx, g.others, func(ctx context.Context) (Times, error) { return g.Collective.ReduceScatter(ctx, dst, src) })
}

func (g *watchedGroup) AllGather(ctx context.Context, dst, src *tensor.Tensor) (Times, error) {
	return g.t.within(ctx, g.others, func(ctx context.Context) (Times, error) { return g.Collective.AllGather(ctx, dst, src) })
}

func (g *watchedGroup) Broadcast(ctx context.Context, t *tensor.Tensor, root int) (Times, error) {
	return g.t.within(ctx, g.others, func(ctx context.Context) (Times, error) { return g.Collective.Broadcast(ctx, t, root) })
}

func (g *watchedGroup) AllToAll(ctx context.Context, dst, src *tensor.Tensor) (Times, error) {
	return g.t.within(ctx, g.others, func(ctx context.Context) (Times, error) { return g.Collective.AllToAll(ctx, dst, src) })
}

func (g *watchedGroup) Barrier(ctx context.Context) (Times, error) {
	return g.t.within(ctx, g.others, g.Collective.Barrier)
}
