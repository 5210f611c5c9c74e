package schedule

import (
	"testing"
	"time"
)

// BenchmarkSimulator is the clock's speed where the planner needs it: 16 ranks, 128 microbatches.
func BenchmarkSimulator(b *testing.B) {
	for _, name := range []string{"1f1b", "zb-h1"} {
		b.Run(name, func(b *testing.B) {
			s, err := New(name, 16, 128, 0)
			if err != nil {
				b.Skip(err)
			}
			m, err := NewSimulator(s)
			if err != nil {
				b.Fatal(err)
			}
			c := Uniform(3, 3, 3)
			c.Move = func(Op, int, int) Transfer { return Transfer{Latency: 1, Occupancy: 1} }
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Run(c); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.count()), "ns/op-of-schedule")
		})
	}
}

// latency is a Move in which every message takes only time on the way.
func latency(d time.Duration) func(Op, int, int) Transfer {
	return func(Op, int, int) Transfer { return Transfer{Latency: d} }
}

// TestLatencyFormulas holds the clock to closed forms for a latency lam on every boundary, m a multiple of p:
// GPipe pays 2(p-1) lam, 1F1B 2(p-2) + 2(p-1) m/p, a round trip for every p microbatches.
func TestLatencyFormulas(t *testing.T) {
	const lam = 1
	for p := 2; p <= 8; p++ {
		for m := p; m <= 4*p; m += p {
			plain := time.Duration((m + p - 1) * 300)
			for name, want := range map[string]time.Duration{
				"gpipe": plain + 2*time.Duration(p-1)*lam,
				"1f1b":  plain + time.Duration(2*(p-2)+2*(p-1)*(m/p))*lam,
			} {
				c := Uniform(100, 100, 100)
				c.Move = latency(lam)
				got, err := Simulate(mustNew(t, name, p, m, 0), c)
				if err != nil {
					t.Fatal(err)
				}
				if got.Makespan != want {
					t.Errorf("%s p=%d m=%d: makespan %d, formula %d", name, p, m, got.Makespan, want)
				}
			}
		}
	}
}
