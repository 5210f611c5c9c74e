package commtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"triax/comm"
	"triax/tensor"
)

var errStop = errors.New("stopped by the test")

// cancelled: one member never comes. All others end with the cause once the run is stopped, whatever they wait in.
func cancelled(t *testing.T, open Open) {
	const size, n = 3, 12
	call := func(f func(ctx context.Context, m comm.Collective, part, whole, other *tensor.Tensor) (comm.Times, error)) func(context.Context, Rank, comm.Collective) error {
		return func(ctx context.Context, r Rank, m comm.Collective) error {
			one := func(int) float64 { return 1 }
			part, whole, other := r.numbers(tensor.F32, n, one), r.numbers(tensor.F32, n*size, one), r.numbers(tensor.F32, n*size, one)
			defer release(part, whole, other)
			_, err := f(ctx, m, part, whole, other)
			return err
		}
	}
	for name, wait := range map[string]func(context.Context, Rank, comm.Collective) error{
		"all_reduce": call(func(ctx context.Context, m comm.Collective, part, _, _ *tensor.Tensor) (comm.Times, error) {
			return m.AllReduce(ctx, part, comm.Sum)
		}),
		"reduce_scatter": call(func(ctx context.Context, m comm.Collective, part, whole, _ *tensor.Tensor) (comm.Times, error) {
			return m.ReduceScatter(ctx, part, whole)
		}),
		"all_gather": call(func(ctx context.Context, m comm.Collective, part, whole, _ *tensor.Tensor) (comm.Times, error) {
			return m.AllGather(ctx, whole, part)
		}),
		"broadcast": call(func(ctx context.Context, m comm.Collective, part, _, _ *tensor.Tensor) (comm.Times, error) {
			return m.Broadcast(ctx, part, 0)
		}),
		"all_to_all": call(func(ctx context.Context, m comm.Collective, _, whole, other *tensor.Tensor) (comm.Times, error) {
			return m.AllToAll(ctx, other, whole)
		}),
		"barrier": call(func(ctx context.Context, m comm.Collective, _, _, _ *tensor.Tensor) (comm.Times, error) {
			return m.Barrier(ctx)
		}),
		"recv": func(ctx context.Context, r Rank, _ comm.Collective) error {
			_, _, err := r.Wire.Recv(ctx, 0, comm.Tag{}, spec(n))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			ranks := open(t, size)
			for rank, err := range Play(ctx, ranks, func(ctx context.Context, r Rank) error {
				m, err := all(ctx, r)
				if err != nil {
					return err
				}
				// Most of the time the others are waiting by then; both ways must do. Where ranks are processes, each stops itself.
				time.AfterFunc(5*time.Millisecond, func() { stop(errStop) })
				if r.Wire.Rank() == 0 {
					return nil
				}
				return wait(ctx, r, m)
			}) {
				if rank := ranks[rank].Wire.Rank(); rank > 0 && !errors.Is(err, errStop) {
					t.Errorf("rank %d ended with %v, want the cause", rank, err)
				}
			}
		})
	}
}

// cancelledAtAnyMoment: ranks in the middle of calls and messages are stopped, and give their memory back as soon as they
// are out of a call. Under the race detector, memory that a peer still works on shows.
func cancelledAtAnyMoment(t *testing.T, open Open) {
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		after := time.Duration(rng.Int64N(int64(2 * time.Millisecond)))
		ctx, stop := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(after, func() { stop(errStop) })
		ranks := open(t, 4)
		for rank, err := range Play(ctx, ranks, untilStopped) {
			if !errors.Is(err, errStop) {
				t.Errorf("seed %d: rank %d ended with %v, want the cause", seed, rank, err)
			}
		}
		timer.Stop()
		stop(nil)
	}
}

func untilStopped(ctx context.Context, r Rank) error {
	m, err := all(context.WithoutCancel(ctx), r) // groups are made up front, before anything can be stopped
	if err != nil {
		return err
	}
	size, place := r.Wire.Size(), r.Wire.Rank()
	for round := 0; ; round++ {
		n := 1000 + round%7
		c := check{r, m, place, size, tensor.F32}
		if err := c.everything(ctx, n); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		tag := comm.Tag{Micro: round}
		r.send(ctx, (place+1)%size, tag, float64(round), n)
		if err := r.expect(ctx, (place+size-1)%size, tag, float64(round), n); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
}
