package comm_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"triax/comm"
	"triax/comm/commtest"
	"triax/comm/local"
	"triax/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is ranks in this process.
func world(t *testing.T, size int) []commtest.Rank {
	w := local.New(size)
	t.Cleanup(w.Close)
	ranks := make([]commtest.Rank, size)
	for i := range ranks {
		mem := commtest.Host()
		ranks[i] = commtest.Rank{Wire: w.Rank(i, mem.Heap()), Mem: mem}
	}
	return ranks
}

// play runs f on every rank; no rank may fail.
func play(t *testing.T, ranks []commtest.Rank, f func(ctx context.Context, r commtest.Rank) error) {
	t.Helper()
	for rank, err := range commtest.Play(t.Context(), ranks, f) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestStreamSameBits: sums given to a stream, several under way at a time, have the bits of sums taken at once.
func TestStreamSameBits(t *testing.T) {
	const size, tensors, n = 3, 20, 501
	run := func(stream bool) (out [size][tensors][]float32) {
		play(t, world(t, size), func(ctx context.Context, r commtest.Rank) error {
			rank := r.Wire.Rank()
			g, err := comm.NewGroup(ctx, r.Wire, "dp [0 1 2]", "dp", []int{0, 1, 2}, nil)
			if err != nil {
				return err
			}
			var s *comm.Stream
			if stream {
				s = comm.NewStream()
			}
			defer s.Close()
			var pending []*comm.Pending
			for k := range tensors {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(math.Sin(float64(1+i+n*(k+tensors*rank)))) * float32(math.Pow(10, float64(rank)))
				}
				out[rank][k] = x
				pending = append(pending, s.Do(ctx, func(ctx context.Context) error {
					return g.AllReduce(ctx, tensor.Of(tensor.F32, x, n), comm.Sum)
				}))
			}
			for _, p := range pending {
				if _, err := p.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		return out
	}
	a, b := run(false), run(true)
	for rank := range size {
		for k := range tensors {
			for i := range n {
				if x, y := a[rank][k][i], b[rank][k][i]; math.Float32bits(x) != math.Float32bits(y) {
					t.Fatalf("rank %d, tensor %d, element %d: %v at once, %v by a stream", rank, k, i, x, y)
				}
			}
		}
	}
}

// TestStreamBesideCompute: calls run in order, one at a time, while the caller goes on.
func TestStreamBesideCompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := comm.NewStream()
		defer s.Close()
		start := time.Now()
		var ended []time.Duration
		var last *comm.Pending
		for range 3 {
			last = s.Do(t.Context(), func(context.Context) error {
				time.Sleep(2 * time.Second)
				ended = append(ended, time.Since(start))
				return nil
			})
		}
		time.Sleep(5 * time.Second) // the computation
		if _, err := last.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, at := range ended {
			if want := time.Duration(2*(i+1)) * time.Second; at != want {
				t.Errorf("call %d ended at %v, want %v", i, at, want)
			}
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("took %v, want 6s", took)
		}
	})
}

// TestStreamStopsAtFirstError: no call runs after one that failed, and all say why.
func TestStreamStopsAtFirstError(t *testing.T) {
	why := errors.New("cable out")
	for name, fail := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return why },
		"panic": func(context.Context) error { panic("cable out") },
	} {
		t.Run(name, func(t *testing.T) {
			s := comm.NewStream()
			ran := false
			first := s.Do(t.Context(), fail)
			second := s.Do(t.Context(), func(context.Context) error { ran = true; return nil })
			for i, p := range []*comm.Pending{first, second} {
				if _, err := p.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "cable out") {
					t.Errorf("call %d ended with %v", i, err)
				}
			}
			s.Close()
			if ran {
				t.Error("a call ran after another had failed")
			}
		})
	}
}

// TestStreamCancelled: a stream that is stuck, and callers that wait for it, end with the run.
func TestStreamCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("rank 3 stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		s := comm.NewStream()
		stuck := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
		go func() {
			time.Sleep(time.Second)
			stop(why)
		}()
		var all []*comm.Pending
		for range 400 { // more than the stream holds
			all = append(all, s.Do(ctx, stuck))
		}
		for i, p := range all {
			if _, err := p.Wait(t.Context()); !errors.Is(err, why) {
				t.Fatalf("call %d ended with %v", i, err)
			}
		}
		s.Close()
	})
}
