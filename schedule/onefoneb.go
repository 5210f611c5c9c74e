package schedule

// OneFOneB alternates one forward and one backward once rank r has p-1-r forwards ahead, so that at most
// min(m, p-r) microbatches are in flight (Narayanan et al. 2021, section 2.2.1). Its idle time equals GPipe's.
func OneFOneB(p, m int) *Schedule {
	s := flat("1f1b", p, m)
	for r := range s.Ranks {
		forward := make([]Op, m)
		backward := make([]Op, m)
		for i := range m {
			forward[i] = Op{r, F, i}
			backward[i] = Op{r, B, i}
		}
		s.Ranks[r] = alternate(forward, backward, p-1-r)
	}
	return s.finish()
}

// alternate runs ahead forwards first, then a forward and a backward in turn, then what backwards are left.
// Where there are fewer forwards than ahead, all of them come first.
func alternate(forward, backward []Op, ahead int) []Op {
	ahead = min(ahead, len(forward))
	ops := make([]Op, 0, len(forward)+len(backward)+2)
	ops = append(ops, forward[:ahead]...)
	for i, f := range forward[ahead:] {
		ops = append(ops, f, backward[i])
	}
	return append(ops, backward[len(forward)-ahead:]...)
}
