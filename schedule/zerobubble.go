package schedule

// ZBH1 is 1F1B with the backward split: input gradients go on at once, weight gradients fill what would be idle
// (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", ZB-H1). Every rank may hold as much as 1F1B's first
// rank, p microbatches; the idle time falls to (p-1)(F+I-W).
func ZBH1(p, m int) *Schedule {
	return zeroBubble("zb-h1", p, m, p, func(r int) int { return p - 1 - r })
}

// ZBH2 runs twice as far ahead, so that no rank idles between its first op and its last (same paper, ZB-H2).
// It holds 2p-1 microbatches; of the whole step (p-1)F stay idle, in which the last rank waits for its first.
func ZBH2(p, m int) *Schedule {
	return zeroBubble("zb-h2", p, m, 2*p-1, func(r int) int { return 2 * (p - 1 - r) })
}

// zeroBubble alternates F and I after ahead(r) forwards on rank r and fills in the weight gradients.
func zeroBubble(name string, p, m, limit int, ahead func(r int) int) *Schedule {
	s := flat(name, p, m)
	for r := range s.Ranks {
		forward := make([]Op, m)
		backward := make([]Op, m)
		for i := range m {
			forward[i] = Op{r, F, i}
			backward[i] = Op{r, I, i}
		}
		s.Ranks[r] = alternate(forward, backward, ahead(r))
	}
	out, err := s.fill(limit, 0, 0)
	if err != nil {
		panic(err) // alternate never has more than ahead(r)+1 forwards without their I, which is within limit
	}
	return out
}
