package schedule

import "fmt"

// maxStates bounds the search of Optimal: some hundred megabytes.
const maxStates = 6 << 20

// Optimal is the shortest schedule of one chunk a rank in which no rank holds more than limit activations (F to W), when F, I and W take one
// unit each. It is found by exhausting all states, time step by time step: on every rank so many F, I and W are done, each
// kind in the order of the microbatches, which no exchange improves. So it suits small p and m; larger ones are an error.
func Optimal(p, m, limit int) (*Schedule, error) {
	if p < 1 || p > 5 || m < 1 || m > 15 {
		return nil, fmt.Errorf("schedule: optimal search of %d ranks and %d microbatches: at most 5 and 15; use a generator", p, m)
	}
	if limit < 1 {
		return nil, fmt.Errorf("schedule: a limit of %d activations: at least 1", limit)
	}
	s := &searcher{p: p, m: m, limit: limit, seen: map[counts]counts{0: 0}}
	for r := range p {
		s.goal = s.goal.add(r, F, m).add(r, I, m).add(r, W, m)
	}
	for layer := []counts{0}; len(layer) > 0; {
		var next []counts
		for _, c := range layer {
			if c == s.goal {
				return s.schedule()
			}
			next = s.steps(next, c, 0, c)
		}
		if len(s.seen) > maxStates {
			return nil, fmt.Errorf("schedule: optimal search of %d ranks and %d microbatches: more than %d states; use fewer microbatches", p, m, maxStates)
		}
		layer = next
	}
	return nil, fmt.Errorf("schedule: nothing runs within %d activations", limit)
}

// counts is how many F, I and W each rank has done: four bits each, twelve a rank.
type counts uint64

func (c counts) of(r int, k Kind) int { return int(c >> (12*r + 4*int(k)) & 15) }

func (c counts) add(r int, k Kind, n int) counts { return c + counts(n)<<(12*r+4*int(k)) }

type searcher struct {
	p, m, limit int
	goal        counts
	seen        map[counts]counts // where a state was first reached from: one unit earlier
}

// steps adds to next every state that one unit of time can lead to from c: ranks from r on choose, to has the choices of those before.
func (s *searcher) steps(next []counts, c counts, r int, to counts) []counts {
	if r == s.p {
		if _, ok := s.seen[to]; !ok {
			s.seen[to] = c
			next = append(next, to)
		}
		return next
	}
	for _, k := range []Kind{I, F, W} {
		if s.may(c, r, k) {
			next = s.steps(next, c, r+1, to.add(r, k, 1))
		}
	}
	return s.steps(next, c, r+1, to) // or wait
}

// may says whether rank r can run its next op of a kind, with what was done before this unit of time.
func (s *searcher) may(c counts, r int, k Kind) bool {
	n := c.of(r, k)
	if n == s.m {
		return false
	}
	switch k {
	case F:
		return n-c.of(r, W) < s.limit && (r == 0 || c.of(r-1, F) > n)
	case I:
		return c.of(r, F) > n && (r == s.p-1 || c.of(r+1, I) > n)
	}
	return c.of(r, I) > n
}

// schedule reads the way to the goal backwards.
func (s *searcher) schedule() (*Schedule, error) {
	out := flat("optimal", s.p, s.m)
	for at := s.goal; at != 0; {
		from := s.seen[at]
		for r := range s.p {
			for _, k := range []Kind{F, I, W} {
				if n := from.of(r, k); at.of(r, k) > n {
					out.Ranks[r] = append([]Op{{r, k, n}}, out.Ranks[r]...)
				}
			}
		}
		at = from
	}
	return out.finish(), nil
}
