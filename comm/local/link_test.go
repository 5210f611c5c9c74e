package local_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"triax/comm"
	"triax/comm/commtest"
	"triax/comm/local"
	"triax/tensor"
)

// floats is what a receiver of n float32 wants.
func floats(n int) comm.Spec {
	return comm.Spec{Kind: tensor.Activations, DType: tensor.F32, Shape: []int{n}}
}

// TestLinkedTimes: 1000 bytes at 1000 bytes a second take a second, and messages between the same two ranks in one direction follow
// one another; the other direction is a link of its own.
func TestLinkedTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := open(local.Linked(100*time.Millisecond, 1000))(t, 3)
		start := time.Now()
		send := func(from, to, micro int) {
			r := ranks[from]
			r.Wire.Send(t.Context(), to, comm.Tag{Micro: micro}, r.Mem.Heap().New(tensor.Activations, tensor.F32, 250))
		}
		for micro := range 3 {
			send(0, 1, micro)
		}
		send(1, 0, 0)
		send(2, 1, 0)
		for _, c := range []struct {
			to, from, micro int
			at              time.Duration
		}{
			{1, 0, 2, 3100 * time.Millisecond},
			{1, 0, 0, 3100 * time.Millisecond}, // was there at 1.1 s; the receiver came late
			{1, 2, 0, 3100 * time.Millisecond},
			{0, 1, 0, 3100 * time.Millisecond},
		} {
			x, times, err := ranks[c.to].Wire.Recv(t.Context(), c.from, comm.Tag{Micro: c.micro}, floats(250))
			if err != nil {
				t.Fatal(err)
			}
			x.Release()
			if at := time.Since(start); at != c.at {
				t.Errorf("message %d from rank %d is there at %v, want %v", c.micro, c.from, at, c.at)
			}
			if times.Wait != 0 {
				t.Errorf("waited %v for a message that had been sent", times.Wait)
			}
		}
	})
}

// TestWaitAndMove: waiting for the sender and moving the data are told apart, exactly.
func TestWaitAndMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := open(local.Linked(0, 1000))(t, 2)
		go func() {
			time.Sleep(7 * time.Second)
			ranks[0].Wire.Send(t.Context(), 1, comm.Tag{}, ranks[0].Mem.Heap().New(tensor.Activations, tensor.F32, 500))
		}()
		time.Sleep(2 * time.Second)
		x, times, err := ranks[1].Wire.Recv(t.Context(), 0, comm.Tag{}, floats(500))
		if err != nil {
			t.Fatal(err)
		}
		x.Release()
		if want := (comm.Times{Wait: 5 * time.Second, Move: 2 * time.Second}); times != want {
			t.Errorf("%+v, want %+v", times, want)
		}
	})
}

// TestCollectiveWait: whoever comes first to a collective waits for the last; the last does not.
func TestCollectiveWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, err := range commtest.Play(t.Context(), open()(t, 3), func(ctx context.Context, r commtest.Rank) error {
			m, err := r.Wire.Join(ctx, "all", []int{0, 1, 2})
			if err != nil {
				return err
			}
			late := time.Duration(r.Wire.Rank()) * time.Second
			time.Sleep(late)
			times, err := m.Barrier(ctx)
			if want := 2*time.Second - late; times.Wait != want || times.Move != 0 {
				t.Errorf("rank %d: %+v, want a wait of %v", r.Wire.Rank(), times, want)
			}
			return err
		}) {
			if err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		}
	})
}

// TestReordered: some message sent later is there earlier, the same ones for the same seed.
func TestReordered(t *testing.T) {
	arrivals := func(seed uint64) (at [8]time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			ranks := open(local.Reordered(seed, time.Second))(t, 2)
			start := time.Now()
			for micro := range at {
				ranks[0].Wire.Send(t.Context(), 1, comm.Tag{Micro: micro}, ranks[0].Mem.Heap().New(tensor.Activations, tensor.F32, 1))
				go func() {
					x, _, err := ranks[1].Wire.Recv(t.Context(), 0, comm.Tag{Micro: micro}, floats(1))
					if err != nil {
						t.Error(err)
						return
					}
					x.Release()
					at[micro] = time.Since(start)
				}()
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
		})
		return at
	}
	a := arrivals(1)
	overtakes := false
	for i := 1; i < len(a); i++ {
		overtakes = overtakes || a[i] < a[i-1]
	}
	if !overtakes {
		t.Errorf("no message overtakes another: %v", a)
	}
	if b := arrivals(1); a != b {
		t.Errorf("the same seed gives %v, then %v", a, b)
	}
	if b := arrivals(2); a == b {
		t.Errorf("seeds 1 and 2 both give %v", a)
	}
}
