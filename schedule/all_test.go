package schedule

import (
	"strings"
	"testing"
	"time"
)

// every runs f on every schedule at p 1 to 8 and m 1 to 16, where the schedule's own rule allows it.
func every(t *testing.T, f func(t *testing.T, s *Schedule)) {
	t.Helper()
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			n := 0
			for p := 1; p <= 8; p++ {
				for m := 1; m <= 16; m++ {
					s, err := New(name, p, m, 0)
					if err != nil {
						if name != "dualpipe-v" || m >= 2*p {
							t.Errorf("p %d m %d: %v", p, m, err)
						}
						continue
					}
					n++
					f(t, s)
				}
			}
			if n == 0 {
				t.Error("nothing was tried")
			}
		})
	}
}

// TestB67EveryScheduleIsSafe: every op once, needs met, and no deadlock when a send waits for its receive; and it holds with
// fewer microbatches than stages (B71).
func TestB67EveryScheduleIsSafe(t *testing.T) {
	every(t, func(t *testing.T, s *Schedule) {
		if err := Verify(s); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	})
}

// TestMemoryBounds: every schedule keeps what it promises to hold at most, as does each number of chunks; and one activation less is not enough,
// so the promise is the least that holds, but for V-shapes and few microbatches.
func TestMemoryBounds(t *testing.T) {
	reached := map[string]bool{}
	check := func(s *Schedule) {
		if s.Limit < 1 {
			t.Fatalf("%v promises nothing", s)
		}
		for r, peak := range Peaks(s) {
			if peak.Held > s.Limit {
				t.Errorf("%v: rank %d holds %d, promised %d", s, r, peak.Held, s.Limit)
			}
			if peak.Held == s.Limit {
				reached[s.Name] = true
			}
		}
	}
	every(t, func(_ *testing.T, s *Schedule) { check(s) })
	for _, name := range []string{"interleaved", "looped-bfs"} {
		for v := 1; v <= 4; v++ {
			for p := 1; p <= 6; p++ {
				for m := 1; m <= 20; m++ {
					check(mustNew(t, name, p, m, v))
				}
			}
		}
	}
	for _, name := range Names() {
		if !reached[name] {
			t.Errorf("%s never holds what it promises to hold at most", name)
		}
	}
	s := mustNew(t, "1f1b", 4, 8, 0)
	s.Limit = 3
	if err := Verify(s); err == nil || !strings.Contains(err.Error(), "rank 0 holds 4 activations at once: its limit is 3") {
		t.Errorf("a limit of 3: %v", err)
	}
}

// TestPublishedBubbles: idle time beyond the useful m(F+I+W), in units with F = I = W = 1 of a chunk, against the papers' formulas.
func TestPublishedBubbles(t *testing.T) {
	for _, c := range []struct {
		name  string
		where string
		want  func(p, m, v int) time.Duration // exact, in units of a chunk's F
	}{
		{"gpipe", "Huang et al. 2019, §2.3: (p-1)(F+B)", func(p, _, _ int) time.Duration { return time.Duration(3 * (p - 1)) }},
		{"1f1b", "Narayanan et al. 2021, §2.2.1: (p-1)(F+B)", func(p, _, _ int) time.Duration { return time.Duration(3 * (p - 1)) }},
		{"interleaved", "Narayanan et al. 2021, §2.2.2: (p-1)(F+B)/v, chunks being 1/v as long", func(p, _, _ int) time.Duration { return time.Duration(3 * (p - 1)) }},
		{"looped-bfs", "Lamy-Poirier 2023, §4.1: as interleaved", func(p, _, _ int) time.Duration { return time.Duration(3 * (p - 1)) }},
		{"zb-h1", "Qi et al. 2023, §3.1: (p-1)(F+I-W)", func(p, _, _ int) time.Duration { return time.Duration(p - 1) }},
		{"zb-h2", "Qi et al. 2023, §3.1: none per rank; the step as a whole (p-1)F", func(p, _, _ int) time.Duration { return time.Duration(p - 1) }},
		{"zb-v", "Qi et al. 2024, §4: none per rank; the step as a whole (p-1)F/2 of a whole stage", func(p, _, _ int) time.Duration { return time.Duration(p - 1) }},
		{"dualpipe-v", "DualPipe notes: (p-1)(F&B + B - 3W)/2", func(p, _, _ int) time.Duration { return time.Duration(p - 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for p := 2; p <= 8; p++ {
				for m := 3 * p; m <= 4*p; m += p {
					s := mustNew(t, c.name, p, m, 0)
					tl, err := Simulate(s, Uniform(1, 1, 1))
					if err != nil {
						t.Fatal(err)
					}
					v := s.Chunks()
					if got, want := tl.Makespan-time.Duration(3*m*v), c.want(p, m, v); got != want {
						t.Errorf("p %d m %d: %d units idle on the longest rank, %s says %d", p, m, got, c.where, want)
					}
				}
			}
		})
	}
}

// TestControllableMemory: V-Half idles at most half as long as 1F1B, V-Min two thirds and a little per microbatch (Qi et al. 2024, §4),
// here at the paper's size p 8, m 32; in whole-stage units V-Half 8.5 of 21.
func TestControllableMemory(t *testing.T) {
	extra := func(name string) time.Duration {
		s := mustNew(t, name, 8, 32, 0)
		tl, err := Simulate(s, Uniform(2/time.Duration(s.Chunks()), 2/time.Duration(s.Chunks()), 2/time.Duration(s.Chunks())))
		if err != nil {
			t.Fatal(err)
		}
		return tl.Makespan - 6*32
	}
	base := extra("1f1b") // 42 half units
	if half := extra("v-half"); base != 42 || half > 17 {
		t.Errorf("1f1b idles %d, v-half %d; want 42 and at most 17", base, half)
	}
	if least := extra("v-min"); least > 26 {
		t.Errorf("v-min idles %d, the paper's 26", least)
	}
}
