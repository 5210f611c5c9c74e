package local

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"triax/tensor"
)

// TestMeetOrLeave: whatever the moment at which a member gives up, either all members meet or none does.
func TestMeetOrLeave(t *testing.T) {
	const size = 4
	for seed := range 300 {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		m := newMeeting(size, []int{0, spinRounds}[seed%2])
		ctx, stop := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		after := rng.IntN(200)
		var met [size]int
		var all sync.WaitGroup
		for place := range size {
			all.Go(func() {
				for round := 0; ; round++ {
					if place == 0 && round == after {
						stop(why)
					}
					if err := m.arrive(ctx, place); err != nil {
						if !errors.Is(err, why) {
							t.Errorf("seed %d: %v", seed, err)
						}
						met[place] = round
						return
					}
				}
			})
		}
		all.Wait()
		stop(nil)
		for place := range size {
			if met[place] != met[0] {
				t.Fatalf("seed %d: members met so often: %v", seed, met)
			}
		}
	}
}

// TestLeaverIsNamed: a member whose own run goes on hears who left and why.
func TestLeaverIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeeting(3, 0)
		why := errors.New("power cut")
		ctx, stop := context.WithCancelCause(t.Context())
		for place := range 2 {
			go func() {
				own := t.Context()
				if place == 1 {
					own = ctx
				}
				err := m.arrive(own, place)
				if !errors.Is(err, why) {
					t.Errorf("place %d: %v", place, err)
				}
				if want := "the member at place 1 left: power cut"; place == 0 && err.Error() != want {
					t.Errorf("place 0: %q, want %q", err, want)
				}
			}()
		}
		time.Sleep(time.Second)
		stop(why)
		synctest.Wait()
		if err := m.arrive(t.Context(), 2); !errors.Is(err, why) {
			t.Errorf("place 2, late: %v", err)
		}
	})
}

// TestOneCallAtATime: a rank with two calls under way on one group would be counted twice.
func TestOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(2)
		defer w.Close()
		m, err := w.Rank(0, tensor.NewHeap(nil, true)).Join(t.Context(), "pair", []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() { m.Barrier(ctx) }()
		synctest.Wait()
		defer stop()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		m.Barrier(ctx)
	})
}

// TestVectorsAndScalars: additions by vectors give the bits of plain Go, wherever they end.
func TestVectorsAndScalars(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for n := range 150 {
		a, b, got, want := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
		c, d, got64, want64 := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range n {
			c[i], d[i] = rng.NormFloat64(), rng.NormFloat64()
			a[i], b[i] = float32(c[i]), float32(d[i])
		}
		addF32(got, a, b)
		add(want, a, b)
		addF64(got64, c, d)
		add(want64, c, d)
		for i := range n {
			if got[i] != want[i] || got64[i] != want64[i] {
				t.Fatalf("%d elements: element %d is %v and %v, want %v and %v", n, i, got[i], got64[i], want[i], want64[i])
			}
		}
	}
}

// TestNarrow: bfloat16 keeps NaN even when the bits that make it one are cut off, and goes to infinity where rounding up does.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		from uint32
		want uint16
	}{
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
		{0x7f7fffff, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}, {0x80000000, 0x8000},
	} {
		var got [1]uint16
		narrow(got[:], []float32{math.Float32frombits(c.from)})
		if got[0] != c.want {
			t.Errorf("%#x becomes %#x, want %#x", c.from, got[0], c.want)
		}
	}
}
