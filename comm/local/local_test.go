package local_test

import (
	"testing"
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
