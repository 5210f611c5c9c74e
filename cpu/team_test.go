package cpu

import (
	"sync/atomic"
	"testing"
)

// tally counts how often each index was run.
type tally struct{ seen []atomic.Int32 }

func (t *tally) run(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		t.seen[i].Add(1)
	}
}

func TestTeamRunsEveryIndexOnce(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5} {
		for _, spin := range []bool{false, true} {
			team := newTeam(size, spin)
			for _, n := range []int{0, 1, 2, 7, 16, 100} {
				for _, unit := range []int{1, 3, 16} {
					job := &tally{make([]atomic.Int32, n)}
					team.split(n, unit, serialWork, job)
					for i := range job.seen {
						if got := job.seen[i].Load(); got != 1 {
							t.Fatalf("size %d n %d unit %d: index %d run %d times", size, n, unit, i, got)
						}
					}
				}
			}
			team.close()
		}
	}
}

type bomb struct{}

func (bomb) run(worker, _, _ int) {
	if worker == 1 {
		panic("boom")
	}
}

func TestTeamPanicReachesTheCaller(t *testing.T) {
	team := newTeam(2, false)
	defer team.close()
	defer func() {
		if p := recover(); p != "boom" {
			t.Fatalf("recovered %v", p)
		}
		job := &tally{make([]atomic.Int32, 4)}
		team.split(4, 1, serialWork, job) // the team still works
		if job.seen[3].Load() != 1 {
			t.Fatal("no work done after a panic")
		}
	}()
	team.split(2, 1, serialWork, bomb{})
}
