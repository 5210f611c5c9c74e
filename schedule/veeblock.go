package schedule

import (
	"cmp"
	"slices"
	"time"
)

// block is the repeating pattern of a V-shaped schedule (Qi et al. 2024, "Pipeline Parallelism with
// Controllable Memory", §3): by how many units of time a microbatch's op comes later on the next rank along its
// way, forth and back, forward and backward. Every six units (two chunks, each F, I and W) a microbatch starts.
// The sum of the four says how long activations live, and so how many a rank holds.
type block struct {
	out, back   int // F of the first chunk, ranks 0 to p-1; F of the second, p-1 to 0
	home, final int // I of the second chunk, ranks 0 to p-1; I of the first, p-1 to 0
}

// order puts every rank's F and I in the order of the block's times.
func (b block) order(s *Schedule) {
	type timed struct {
		at int
		op Op
	}
	p, m := len(s.Ranks), s.Micros
	turn := (p-1)*b.out + 1
	loss := turn + (p-1)*b.back + 1
	last := loss + (p-1)*b.home + 1
	for r := range s.Ranks {
		ops := make([]timed, 0, 4*m)
		for i := range m {
			ops = append(ops,
				timed{6*i + r*b.out, Op{r, F, i}},
				timed{6*i + turn + (p-1-r)*b.back, Op{2*p - 1 - r, F, i}},
				timed{6*i + loss + r*b.home, Op{2*p - 1 - r, I, i}},
				timed{6*i + last + (p-1-r)*b.final, Op{r, I, i}})
		}
		// At the same time what is further along its way goes first: it frees memory soonest.
		slices.SortStableFunc(ops, func(a, b timed) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.op.Micro, b.op.Micro))
		})
		s.Ranks[r] = make([]Op, len(ops), len(ops)+2*m+3)
		for i, o := range ops {
			s.Ranks[r][i] = o.op
		}
	}
}

// The patterns that the V-shaped schedules start from. The paper's own were found by search at each size; here the few
// that are ever best are tried at the size at hand.
var veeBlocks = []block{{1, 2, 2, 2}, {1, 1, 2, 1}, {1, 1, 1, 1}, {1, 2, 2, 1}, {1, 1, 1, 2}, {2, 4, 2, 4}, {1, 3, 3, 3}}

// vees makes the shortest V-shaped schedule, at F = I = W, that holds at most limit activations of a chunk; or of the
// smallest number above it with which one can run.
func vees(name string, p, m, limit int) *Schedule {
	for ; ; limit++ {
		var best *Schedule
		var least time.Duration
		for _, b := range veeBlocks {
			for _, look := range []int{0, 2, 3, 4, 6, 8} {
				for slack := range 3 {
					if look == 0 && slack > 0 {
						continue
					}
					s := vee(name, p, m)
					b.order(s)
					s, err := s.fill(limit, look, slack)
					if err != nil {
						continue
					}
					if t := s.unitSpan(); best == nil || t < least {
						best, least = s, t
					}
				}
			}
		}
		if best != nil {
			return best
		}
	}
}

// unitSpan is the makespan when F, I and W all take one unit.
func (s *Schedule) unitSpan() time.Duration {
	t, err := Simulate(s, Uniform(1, 1, 1))
	if err != nil {
		panic(err) // fill walked the same clock
	}
	return t.Makespan
}
