package schedule

// flat is an empty schedule of one stage a rank.
func flat(name string, p, m int) *Schedule { return looped(name, p, m, 1) }

// looped is an empty schedule of v stages a rank, placed round and round: stage s on rank s mod p.
func looped(name string, p, m, v int) *Schedule {
	s := &Schedule{Name: name, Stages: p * v, Micros: m, Place: make([]int, p*v), Ranks: make([][]Op, p)}
	for stage := range s.Place {
		s.Place[stage] = stage % p
	}
	return s
}

// vee is an empty schedule of two stages a rank, placed there and back: stage s on rank s, and on 2p-1-s in the
// second half. Rank 0 holds both the embedding and the loss, and the turn at rank p-1 needs no transfer.
func vee(name string, p, m int) *Schedule {
	s := looped(name, p, m, 2)
	for stage := p; stage < 2*p; stage++ {
		s.Place[stage] = 2*p - 1 - stage
	}
	return s
}

// finish closes every rank's list: R of a stage right after the stage's last weight gradient, one U at the
// end. All replicas of a rank walk the same list, so they meet their reductions in the same order.
func (s *Schedule) finish() *Schedule {
	left := make([]int, s.Stages)
	for r, ops := range s.Ranks {
		out := make([]Op, 0, len(ops)+s.Chunks()+1)
		for _, o := range ops {
			out = append(out, o)
			if o.Kind == W || o.Kind == B {
				if left[o.Stage]++; left[o.Stage] == s.Micros {
					out = append(out, Op{Stage: o.Stage, Kind: R})
				}
			}
		}
		s.Ranks[r] = append(out, Op{Kind: U})
	}
	return s
}
