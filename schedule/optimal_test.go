package schedule

import (
	"strings"
	"testing"
	"time"
)

// TestOptimal: no hand-made schedule beats the exhaustive search at its own memory; where the search beats one, it is said.
func TestOptimal(t *testing.T) {
	for _, p := range []int{1, 2, 3} {
		for m := 1; m <= 5; m++ {
			for name, limit := range map[string]int{"zb-h1": p, "zb-h2": 2*p - 1, "1f1b": p, "gpipe": m} {
				limit = min(limit, m)
				best, err := Optimal(p, m, limit)
				if err != nil {
					t.Fatal(err)
				}
				if err := Verify(best); err != nil {
					t.Errorf("p %d m %d limit %d: %v", p, m, limit, err)
				}
				for r, peak := range Peaks(best) {
					if peak.Held > limit {
						t.Errorf("p %d m %d: rank %d holds %d, limit %d", p, m, r, peak.Held, limit)
					}
				}
				span := func(s *Schedule) time.Duration {
					tl, err := Simulate(s, Uniform(1, 1, 1))
					if err != nil {
						t.Fatal(err)
					}
					return tl.Makespan
				}
				a, b := span(best), span(mustNew(t, name, p, m, 0))
				if a > b {
					t.Errorf("p %d m %d limit %d: the search takes %d, %s %d", p, m, limit, a, name, b)
				}
				if a < b && strings.HasPrefix(name, "zb") {
					t.Logf("p %d m %d limit %d: the search takes %d, %s %d", p, m, limit, a, name, b)
				}
			}
		}
	}
}

// TestOptimalUnderLittleMemory: with half of 1F1B's memory the bubble grows, and it is as small as it can be: one activation at a time
// means one microbatch after the other.
func TestOptimalUnderLittleMemory(t *testing.T) {
	s, err := Optimal(2, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := Simulate(s, Uniform(1, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if tl.Makespan != 4*5 { // F0 F1 I1 I0 W0; W1 fits beside I0
		t.Errorf("makespan %d", tl.Makespan)
	}
	for _, c := range [][3]int{{6, 2, 2}, {2, 16, 2}, {2, 2, 0}} {
		if _, err := Optimal(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v: no error", c)
		}
	}
}

// TestOptimalIsBruteForce: for two microbatches, all orders of all ranks tried one by one give no shorter step, in any order of
// the microbatches.
func TestOptimalIsBruteForce(t *testing.T) {
	for p := 1; p <= 3; p++ {
		for limit := 1; limit <= 2; limit++ {
			least := time.Duration(1 << 60)
			s := flat("tried", p, 2)
			var try func(r int)
			try = func(r int) {
				if r < p {
					for _, line := range lines(r) {
						s.Ranks[r] = line
						try(r + 1)
					}
					return
				}
				whole := *s
				whole.Ranks = append([][]Op(nil), s.Ranks...)
				whole.finish()
				whole.Limit = limit
				if within(&whole) != nil {
					return
				}
				if tl, err := Simulate(&whole, Uniform(1, 1, 1)); err == nil { // an error is a deadlock
					least = min(least, tl.Makespan)
				}
			}
			try(0)
			best, err := Optimal(p, 2, limit)
			if err != nil {
				t.Fatal(err)
			}
			tl, err := Simulate(best, Uniform(1, 1, 1))
			if err != nil {
				t.Fatal(err)
			}
			if tl.Makespan != least {
				t.Errorf("p %d limit %d: the search takes %d, the best of all orders %d", p, limit, tl.Makespan, least)
			}
		}
	}
}

// lines is every order of F I W of two microbatches on a stage.
func lines(stage int) (all [][]Op) {
	for mask := range 1 << 6 {
		var line []Op
		var done [2]int
		for i := range 6 {
			micro := mask >> i & 1
			if done[micro] == 3 {
				break
			}
			line = append(line, Op{stage, []Kind{F, I, W}[done[micro]], micro})
			done[micro]++
		}
		if len(line) == 6 {
			all = append(all, line)
		}
	}
	return all
}
