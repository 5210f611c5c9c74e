package schedule

// Interleaved gives every rank v chunks of the model, chunk c of rank r being virtual stage c*p+r, and runs
// 1F1B over the virtual stages (Narayanan et al. 2021, section 2.2.2): the idle time falls v-fold, the
// transfers grow v-fold.
//
// Microbatches go through the chunks in rounds. Where m is no multiple of p, the rule is: max(1, m div p)
// rounds of sizes as equal as can be, longer ones first. So no round is shorter than p (unless m is), and
// every chunk's first microbatch is back from the last rank when the first rank turns to the next chunk. A
// short last round, the other rule in use, would idle for longer (p=4, m=6, v=2: 9.5 forwards, here 4.5).
func Interleaved(p, m, v int) *Schedule {
	s := looped("interleaved", p, m, v)
	round := rounds(p, m)
	for r := range s.Ranks {
		forward := make([]Op, 0, m*v)
		backward := make([]Op, 0, m*v)
		first := 0
		for _, n := range round {
			for c := range v {
				for i := first; i < first+n; i++ {
					forward = append(forward, Op{c*p + r, F, i})
					backward = append(backward, Op{(v-1-c)*p + r, B, i})
				}
			}
			first += n
		}
		s.Ranks[r] = alternate(forward, backward, s.ahead(r, round[0]))
	}
	return s.finish()
}

// ahead is the number of forwards that interleaved 1F1B's rank r runs before its first backward: all chunks
// but the last of the first round, and a round trip from r to the last rank; with one chunk 1F1B's half of it.
func (s *Schedule) ahead(r, round int) int {
	p, v := len(s.Ranks), s.Chunks()
	if v == 1 {
		return p - 1 - r
	}
	return 2*(p-1-r) + (v-1)*round
}

// rounds cuts m microbatches into max(1, m/p) rounds, sizes equal or one apart, longer ones first.
func rounds(p, m int) []int { return CutEven(m, max(1, m/p)) }
