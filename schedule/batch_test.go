package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// mesh is d x t pipelines side by side: line = data rank x t + tensor rank.
type mesh struct {
	s    *Schedule
	one  [][]Batch // of one pipeline
	d, t int
}

func meshOf(t *testing.T, s *Schedule, data, tensor int) mesh {
	t.Helper()
	one, err := Batches(s)
	if err != nil {
		t.Fatal(err)
	}
	return mesh{s, one, data, tensor}
}

// check runs all pipelines; change, when not nil, is what is done to one rank's batches first.
func (m mesh) check(rank int, change func([]Batch) []Batch) error {
	var all [][]Batch
	for range m.d * m.t {
		all = append(all, m.one...)
	}
	if change != nil {
		list := make([]Batch, len(all[rank]))
		for i, b := range all[rank] {
			list[i] = slices.Clone(b)
		}
		all[rank] = change(list)
	}
	return Together(m.s, all, m.meetings)
}

// meetings are a step's: tensor ranks in every op of a layer, data ranks in R, tied copies, then all in U.
func (m mesh) meetings(r int, o Op) (list []Meeting) {
	p := len(m.s.Ranks)
	line, me := r/p, r%p
	data, tensor := line/m.t, line%m.t
	meet := func(name string, n int, rank func(i int) int) {
		if n < 2 {
			return
		}
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = rank(i)
		}
		list = append(list, Meeting{name, ranks})
	}
	tp := func() { meet(fmt.Sprintf("tp %d", data), m.t, func(i int) int { return (data*m.t+i)*p + me }) }
	dp := func() { meet(fmt.Sprintf("dp %d", tensor), m.d, func(i int) int { return (i*m.t+tensor)*p + me }) }
	switch o.Kind {
	case F, I, B:
		tp()
		tp()
	case R:
		dp()
	case U:
		if first, last := m.s.Place[0], m.s.Place[m.s.Stages-1]; first != last && (me == first || me == last) {
			list = append(list, Meeting{"tied", []int{line*p + min(first, last), line*p + max(first, last)}})
		}
		meet("norm", m.d*m.t*p, func(i int) int { return i })
		dp()
	}
	return list
}

// TestBatches: every schedule at p 1 to 8 and m 1 to 16, on one pipeline, comes to its end on devices that do one thing at a time, with messages paired by
// order alone.
func TestBatches(t *testing.T) {
	every(t, func(t *testing.T, s *Schedule) {
		if err := meshOf(t, s, 1, 1).check(0, nil); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	})
}

// TestBatchesOnMeshes: the same where pipelines meet in collectives: tensor ranks inside ops, data ranks at the end; and with more chunks.
func TestBatchesOnMeshes(t *testing.T) {
	n := 0
	for _, name := range Names() {
		for _, v := range []int{0, 3, 4} {
			for p := 1; p <= 6; p++ {
				for _, m := range []int{1, 2, p, 2*p + 1, 4 * p} {
					s, err := New(name, p, m, v)
					if err != nil {
						continue // not for this schedule
					}
					for _, cut := range [][2]int{{2, 1}, {1, 2}, {2, 2}, {3, 4}} {
						n++
						if err := meshOf(t, s, cut[0], cut[1]).check(0, nil); err != nil {
							t.Errorf("%v, dp %d tp %d: %v", s, cut[0], cut[1], err)
						}
					}
				}
			}
		}
	}
	t.Logf("%d meshes", n)
	if n < 1000 {
		t.Errorf("only %d meshes were tried", n)
	}
}

// TestNaiveBatchesFound: a send right after its op and a receive right before, each by itself, is a ring of ranks that wait for each other.
func TestNaiveBatchesFound(t *testing.T) {
	s := OneFOneB(4, 8)
	actions, err := ProgramOrder(s)
	if err != nil {
		t.Fatal(err)
	}
	naive := make([][]Batch, len(actions))
	for r, list := range actions {
		for _, a := range list {
			naive[r] = append(naive[r], Batch{a})
		}
	}
	if err := Together(s, naive, func(int, Op) []Meeting { return nil }); err == nil || !strings.Contains(err.Error(), "deadlock on devices: rank 0 waits in") {
		t.Errorf("%v", err)
	}
}

// TestBrokenBatchesFound: whatever is done to one message of a good lowering, on whichever rank, is found.
func TestBrokenBatchesFound(t *testing.T) {
	found := 0
	for _, name := range Names() {
		s := mustNew(t, name, 3, 6, 0)
		m := meshOf(t, s, 1, 2)
		for r, list := range m.one {
			for i, b := range list {
				if b.computes() {
					continue
				}
				for k := range b {
					for what, change := range broken(s, i, k) {
						changed := false
						err := m.check(len(m.one)+r, func(all []Batch) []Batch { // of the second line
							out := change(all)
							changed = out != nil
							if !changed {
								return all
							}
							return out
						})
						if changed && err == nil {
							t.Errorf("%v, rank %d, batch %d %v, message %d: %s is not found", s, r, i, b, k, what)
						}
						if changed {
							found++
						}
					}
				}
			}
		}
	}
	t.Logf("%d faults found", found)
	if found < 1000 {
		t.Errorf("only %d faults were tried", found)
	}
}

// broken are ways to break message k of batch i; nil where one does not apply.
func broken(s *Schedule, i, k int) map[string]func([]Batch) []Batch {
	without := func(all []Batch) []Batch {
		if all[i] = slices.Delete(all[i], k, k+1); len(all[i]) == 0 {
			return slices.Delete(all, i, i+1)
		}
		return all
	}
	return map[string]func([]Batch) []Batch{
		"left out": without,
		"twice":    func(all []Batch) []Batch { all[i] = append(all[i], all[i][k]); return all },
		"another microbatch": func(all []Batch) []Batch {
			all[i][k].Op.Micro = (all[i][k].Op.Micro + 1) % s.Micros
			return all
		},
		"another peer": func(all []Batch) []Batch { all[i][k].Peer = (all[i][k].Peer + 1) % len(s.Ranks); return all },
		"turned round": func(all []Batch) []Batch {
			all[i][k].Verb = Send + Recv - all[i][k].Verb
			return all
		},
		"sent before it is made": func(all []Batch) []Batch {
			a := all[i][k]
			at := slices.IndexFunc(all, func(b Batch) bool { return b.computes() && b[0].Op == a.Op })
			if a.Verb != Send {
				return nil
			}
			return slices.Insert(without(all), at, Batch{a})
		},
		"received after it is needed": func(all []Batch) []Batch {
			a := all[i][k]
			stage, _ := s.consumer(a.Op)
			at := slices.IndexFunc(all, func(b Batch) bool {
				o := b[0].Op
				return b.computes() && o.Stage == stage && o.Micro == a.Op.Micro && (o.Kind == F) == (a.Op.Kind == F) && o.Kind != W
			})
			if a.Verb != Recv {
				return nil
			}
			return without(slices.Insert(all, at+1, Batch{a}))
		},
		"in turned order with the next on its lane": func(all []Batch) []Batch {
			a := all[i][k]
			for j := i; j < len(all); j++ {
				for n := range all[j] {
					if b := all[j][n]; (j > i || n > k) && b.Verb == a.Verb && b.Peer == a.Peer && b.Op.Lane() == a.Op.Lane() {
						all[i][k], all[j][n] = b, a
						return all
					}
				}
			}
			return nil
		},
	}
}
