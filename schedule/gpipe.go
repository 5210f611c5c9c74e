package schedule

// GPipe runs all forwards, then all backwards (Huang et al. 2019). Every rank holds all m microbatches at
// its peak; idle share of the step (p-1)/(m+p-1).
func GPipe(p, m int) *Schedule {
	s := flat("gpipe", p, m)
	for r := range s.Ranks {
		ops := make([]Op, 0, 2*m+2)
		for i := range m {
			ops = append(ops, Op{r, F, i})
		}
		for i := range m {
			ops = append(ops, Op{r, B, i})
		}
		s.Ranks[r] = ops
	}
	return s.finish()
}
