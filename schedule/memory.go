package schedule

// Peak is the most that one rank holds at once, counted in activations of one virtual stage and microbatch.
type Peak struct {
	InFlight int // from the start of F to the end of I or B: what F has kept for the backward
	Residue  int // from the end of I to the end of W: inputs and output gradients that W needs
	Held     int // both together, at the worst moment; the memory limit of the zero-bubble papers
}

// Peaks are the peaks of every rank. An op's new activation counts together with what it then frees.
func Peaks(s *Schedule) []Peak {
	out := make([]Peak, len(s.Ranks))
	for r, ops := range s.Ranks {
		var flight, residue int
		for _, o := range ops {
			switch o.Kind {
			case F:
				flight++
			case I:
				flight--
				residue++
			case B:
				flight--
			case W:
				residue--
			}
			out[r].InFlight = max(out[r].InFlight, flight)
			out[r].Residue = max(out[r].Residue, residue)
			out[r].Held = max(out[r].Held, flight+residue)
		}
	}
	return out
}

// within checks the promise of Limit.
func within(s *Schedule) error {
	if s.Limit == 0 {
		return nil
	}
	var f faults
	for r, p := range Peaks(s) {
		if p.Held > s.Limit {
			f.add("schedule %s: rank %d holds %d activations at once: its limit is %d", s.Name, r, p.Held, s.Limit)
		}
	}
	return f.err()
}

// InFlight is the peak number of saved activations on every rank, in virtual stages' microbatches: forwards
// whose I or B has not run.
func InFlight(s *Schedule) []int {
	out := make([]int, len(s.Ranks))
	for r, p := range Peaks(s) {
		out[r] = p.InFlight
	}
	return out
}
