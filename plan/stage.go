package plan

import (
	"triax/comm"
	"triax/schedule"
)

// sum is what an op does to all layers of a virtual stage together.
type sum struct {
	after, peak int64 // bytes of activations held more after it, and most in between, beyond those held before
	flops       float64
	comm        []comm.Entry
}

// sums adds up a stage's layers by kind of op.
func sums(layers []Layer) (out [schedule.NumKinds]sum) {
	for _, kind := range []schedule.Kind{schedule.F, schedule.I, schedule.W, schedule.B} {
		s := &out[kind]
		var book comm.Ledger
		for i := range layers {
			l := layers[i]
			if kind == schedule.I || kind == schedule.B { // backward goes from the last layer to the first
				l = layers[len(layers)-1-i]
			}
			pass := passOf(l, kind)
			s.flops += pass.FLOPs
			book.Merge(pass.Comm)
			switch kind {
			case schedule.F:
				s.peak = max(s.peak, s.after+l.PeakF)
				s.after += l.Kept
			case schedule.I:
				s.peak = max(s.peak, s.after+l.PeakI)
				s.after += l.Residue - l.Kept
			case schedule.W:
				s.after -= l.Residue
			case schedule.B:
				s.peak = max(s.peak, s.after+l.PeakB)
				s.after -= l.Kept
			}
		}
		s.comm = book.Entries()
	}
	return out
}

// counts is how many ops of each kind a rank runs of each virtual stage.
func counts(s *schedule.Schedule) [][schedule.NumKinds]int64 {
	out := make([][schedule.NumKinds]int64, s.Stages)
	for _, ops := range s.Ranks {
		for _, o := range ops {
			if o.Kind != schedule.U {
				out[o.Stage][o.Kind]++
			}
		}
	}
	return out
}
