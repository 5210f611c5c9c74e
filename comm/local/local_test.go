package local_test

import (
	"context"
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

// open is a world of goroutines, for the conformance tests.
func open(opts ...local.Option) commtest.Open {
	return func(t *testing.T, size int) []commtest.Rank {
		w := local.New(size, opts...)
		t.Cleanup(w.Close)
		ranks := make([]commtest.Rank, size)
		for i := range ranks {
			mem := commtest.Host()
			ranks[i] = commtest.Rank{Wire: w.Rank(i, mem.Heap()), Mem: mem}
		}
		return ranks
	}
}

func TestConformance(t *testing.T) {
	commtest.Run(t, open(), tensor.F32, tensor.F64, tensor.BF16)
}

// TestConformanceOfOptions: messages that are slow, late, copied or unbuffered are still the same messages.
func TestConformanceOfOptions(t *testing.T) {
	uneven := func(from, to int, tag comm.Tag) time.Duration {
		return time.Duration((from+2*to+tag.Micro)%3) * 100 * time.Microsecond
	}
	for name, opt := range map[string]local.Option{
		"Rendezvous": local.Rendezvous(),
		"Copied":     local.Copied(),
		"Delayed":    local.Delayed(uneven),
		"Reordered":  local.Reordered(1, 300*time.Microsecond),
		"Linked":     local.Linked(10*time.Microsecond, 50e9),
	} {
		t.Run(name, func(t *testing.T) { commtest.RunMessages(t, open(opt)) })
	}
}

// TestHangIsTold: when ranks wait for each other, the conformance suite's deadline says in what.
func TestHangIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = "hung: rank 0: recv of 3 float32 from rank 1, ring to stage 0, microbatch 0: under way for 2m0s; rank 1: barrier on all: under way for 2m0s"
		for rank, err := range commtest.Play(t.Context(), open()(t, 2), func(ctx context.Context, r commtest.Rank) error {
			m, err := r.Wire.Join(ctx, "all", []int{0, 1})
			if err != nil {
				return err
			}
			if r.Wire.Rank() == 0 {
				_, _, err = r.Wire.Recv(ctx, 1, comm.Tag{Kind: comm.TagRing}, floats(3))
			} else {
				_, err = m.Barrier(ctx)
			}
			return err
		}) {
			if err == nil || err.Error() != want {
				t.Errorf("rank %d: got\n%v\nwant\n%s", rank, err, want)
			}
		}
	})
}
