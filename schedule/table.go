package schedule

// table is a schedule indexed: where each op stands in its rank's list, and whether backwards are split.
type table struct {
	s  *Schedule
	at [4][]int32 // at[kind][stage*Micros+micro] is the op's position in its rank's list, -1 where absent; F I W B
}

func (t *table) cell(stage, micro int) int { return stage*t.s.Micros + micro }

func (t *table) has(o Op) bool { return t.at[o.Kind][t.cell(o.Stage, o.Micro)] >= 0 }

// kindOf tells whether a stage does its backward of a microbatch as B or as I.
func (t *table) kindOf(stage, micro int) Kind {
	if t.at[B][t.cell(stage, micro)] >= 0 {
		return B
	}
	return I
}

// index checks a schedule's shape and that every op occurs once, where and when it may, and returns its table.
func index(s *Schedule) (*table, error) {
	if err := shape(s); err != nil {
		return nil, err
	}
	t := &table{s: s}
	for k := range t.at {
		t.at[k] = make([]int32, s.Stages*s.Micros)
		for i := range t.at[k] {
			t.at[k][i] = -1
		}
	}
	var f faults
	for r := range s.Ranks {
		t.indexRank(r, &f)
	}
	t.complete(&f)
	if err := f.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// count is the number of ops on all ranks.
func (s *Schedule) count() int {
	n := 0
	for _, ops := range s.Ranks {
		n += len(ops)
	}
	return n
}

func shape(s *Schedule) error {
	var f faults
	p := len(s.Ranks)
	switch {
	case p == 0 || s.Stages < 1 || s.Micros < 1:
		f.add("schedule %s: %d ranks, %d stages, %d microbatches: each must be at least 1", s.Name, p, s.Stages, s.Micros)
	case s.Stages%p != 0:
		f.add("schedule %s: %d stages on %d ranks: must be a multiple; nearest: %d", s.Name, s.Stages, p, max(s.Stages/p, 1)*p)
	case s.Stages > maxOps/s.Micros || s.Stages*s.Micros > 2*s.count()+64:
		// Far too few ops: not worth naming each, nor a table that large.
		f.add("schedule %s: %d ops are too few for %d stages and %d microbatches", s.Name, s.count(), s.Stages, s.Micros)
	case len(s.Place) != s.Stages:
		f.add("schedule %s: places of %d stages given, there are %d", s.Name, len(s.Place), s.Stages)
	default:
		held := make([]int, p)
		for stage, r := range s.Place {
			if r < 0 || r >= p {
				f.add("schedule %s: stage %d is placed on rank %d of %d", s.Name, stage, r, p)
				continue
			}
			held[r]++
		}
		for r, n := range held {
			if n != s.Chunks() && len(f.list) < maxFaults {
				f.add("schedule %s: rank %d holds %d stages: each must hold %d", s.Name, r, n, s.Chunks())
			}
		}
	}
	return f.err()
}

// indexRank enters one rank's ops and checks those rules that concern a single list.
func (t *table) indexRank(r int, f *faults) {
	s := t.s
	reduced := make(map[int]bool)
	for i, o := range s.Ranks[r] {
		bad := func(rule string) { f.add("schedule %s: rank %d, op %d (%v): %s", s.Name, r, i, o, rule) }
		switch {
		case o.Kind >= Kind(NumKinds):
			f.add("schedule %s: rank %d, op %d: unknown kind %d", s.Name, r, i, uint8(o.Kind))
		case o.Kind == U:
			if i != len(s.Ranks[r])-1 {
				bad("U must be the last op, and the only U")
			}
		case o.Stage < 0 || o.Stage >= s.Stages:
			f.add("schedule %s: rank %d, op %d: stage %d of %d", s.Name, r, i, o.Stage, s.Stages)
		case s.Place[o.Stage] != r:
			f.add("schedule %s: rank %d, op %d (%v): the stage is on rank %d", s.Name, r, i, o, s.Place[o.Stage])
		case o.Kind == R:
			if reduced[o.Stage] {
				bad("occurs twice")
			}
			reduced[o.Stage] = true
		case o.Micro < 0 || o.Micro >= s.Micros:
			f.add("schedule %s: rank %d, op %d (%v): microbatch %d of %d", s.Name, r, i, o, o.Micro, s.Micros)
		case t.has(o):
			bad("occurs twice")
		case reduced[o.Stage] && (o.Kind == W || o.Kind == B):
			bad("comes after its stage's R")
		default:
			t.at[o.Kind][t.cell(o.Stage, o.Micro)] = int32(i)
		}
	}
	if n := len(s.Ranks[r]); n == 0 || s.Ranks[r][n-1].Kind != U {
		f.add("schedule %s: rank %d: the last op must be U", s.Name, r)
	}
	for stage, place := range s.Place {
		if place == r && !reduced[stage] {
			f.add("schedule %s: rank %d: %dR is missing", s.Name, r, stage)
		}
	}
}

// complete checks that every stage and microbatch has its F and its backward, whole or in two halves.
func (t *table) complete(f *faults) {
	for stage := range t.s.Stages {
		for micro := range t.s.Micros {
			c := t.cell(stage, micro)
			whole, input, weight := t.at[B][c] >= 0, t.at[I][c] >= 0, t.at[W][c] >= 0
			if t.at[F][c] < 0 {
				f.add("schedule %s: rank %d: %dF%d is missing", t.s.Name, t.s.Place[stage], stage, micro)
			}
			switch {
			case whole && (input || weight):
				f.add("schedule %s: rank %d: stage %d, microbatch %d has B besides I or W", t.s.Name, t.s.Place[stage], stage, micro)
			case !whole && !input && !weight:
				f.add("schedule %s: rank %d: %dB%d is missing", t.s.Name, t.s.Place[stage], stage, micro)
			case !whole && !input:
				f.add("schedule %s: rank %d: %dI%d is missing", t.s.Name, t.s.Place[stage], stage, micro)
			case !whole && !weight:
				f.add("schedule %s: rank %d: %dW%d is missing", t.s.Name, t.s.Place[stage], stage, micro)
			}
		}
	}
}
