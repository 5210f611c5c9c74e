package schedule

import "fmt"

// fill completes a schedule whose ranks list only F and I with the weight gradients: W goes where its rank
// would idle, or where the next forward would exceed limit, the most that the rank may hold (F to W, in
// activations of a virtual stage and microbatch); what is left comes at the end. It walks a clock on which F, I
// and W take one unit each, as the zero-bubble papers do for their drawings.
//
// Where the next op of a rank's list cannot run, one of the look ops after it may go first; a forward among those
// must leave slack activations free. A forward that can only run beyond the limit, with no weight gradient left
// to free anything, is an error.
func (s *Schedule) fill(limit, look, slack int) (*Schedule, error) {
	w := newFiller(s, limit)
	w.look, w.slack = look, slack
	for done := 0; done < len(s.Ranks); {
		moved := false
		for r := range s.Ranks {
			step, end := w.step(r)
			moved = moved || step
			if end {
				done++
			}
		}
		w.now++
		if !moved && done < len(s.Ranks) {
			return nil, fmt.Errorf("schedule %s: no op can run within %d activations a rank", s.Name, limit)
		}
	}
	s.Ranks = w.out
	return s.finish(), nil
}

// filler is the state of fill's clock.
type filler struct {
	s     *Schedule
	limit int
	look  int
	slack int
	now   int32
	made  [2][]int32 // when F and I of a stage and microbatch end; 0 where they have not run
	at    []int      // how far each rank has come in its list
	late  [][]Op     // the weight gradients that each rank owes, oldest first
	owed  []int      // how many of late are done
	held  []int
	ended []bool
	out   [][]Op
}

func newFiller(s *Schedule, limit int) *filler {
	p := len(s.Ranks)
	w := &filler{s: s, limit: limit, at: make([]int, p), late: make([][]Op, p), owed: make([]int, p), held: make([]int, p), ended: make([]bool, p), out: make([][]Op, p)}
	for k := range w.made {
		w.made[k] = make([]int32, s.Stages*s.Micros)
	}
	return w
}

// step lets rank r run one op in the unit of time that begins now. It reports whether it did, and whether the
// rank came to its end with that.
func (w *filler) step(r int) (moved, end bool) {
	if w.ended[r] {
		return false, false
	}
	ops := w.s.Ranks[r]
	next := w.at[r]
	for i := next; i < min(len(ops), next+w.look+1); i++ {
		o := ops[i]
		room := w.limit
		if i > next {
			room -= w.slack
		}
		if w.ready(o) && (o.Kind != F || w.held[r] < room) {
			copy(ops[next+1:i+1], ops[next:i])
			ops[next] = o
			w.run(r, o)
			return true, w.end(r)
		}
	}
	if w.owed[r] < len(w.late[r]) {
		w.out[r] = append(w.out[r], w.late[r][w.owed[r]])
		w.owed[r]++
		w.held[r]--
		return true, w.end(r)
	}
	return false, false
}

func (w *filler) end(r int) bool {
	w.ended[r] = w.at[r] == len(w.s.Ranks[r]) && w.owed[r] == len(w.late[r])
	return w.ended[r]
}

// ready tells whether what o needs of other stages has been made by now.
func (w *filler) ready(o Op) bool {
	made := func(k Kind, stage int) bool {
		end := w.made[k][stage*w.s.Micros+o.Micro]
		return end > 0 && end <= w.now
	}
	if o.Kind == F {
		return o.Stage == 0 || made(F, o.Stage-1)
	}
	return made(F, o.Stage) && (o.Stage == w.s.Stages-1 || made(I, o.Stage+1))
}

func (w *filler) run(r int, o Op) {
	w.out[r] = append(w.out[r], o)
	w.at[r]++
	w.made[o.Kind][o.Stage*w.s.Micros+o.Micro] = w.now + 1
	if o.Kind == F {
		w.held[r]++
	} else {
		w.late[r] = append(w.late[r], Op{o.Stage, W, o.Micro})
	}
}
