package cpu

import (
	"fmt"
	"runtime"
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
					team.split(n, unit, wakeWork*max(1, n), job)
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

// bomb goes off in the second thread while the caller is at work.
type bomb struct{ armed chan struct{} }

func (b bomb) run(worker, _, _ int) {
	if worker == 1 {
		close(b.armed)
		panic("boom")
	}
	<-b.armed
}

func TestTeamPanicReachesTheCaller(t *testing.T) {
	team := newTeam(2, false)
	defer team.close()
	defer func() {
		if p := recover(); p != "boom" {
			t.Fatalf("recovered %v", p)
		}
		job := &tally{make([]atomic.Int32, 4)}
		team.split(4, 1, wakeWork, job) // the team still works
		if job.seen[3].Load() != 1 {
			t.Fatal("no work done after a panic")
		}
	}()
	team.split(2, 1, wakeWork, bomb{make(chan struct{})})
}

// TestTeamsInTurn: many jobs of changing sizes, with and without waking, on teams larger than the machine.
func TestTeamsInTurn(t *testing.T) {
	for _, spin := range []bool{false, true} {
		team := newTeam(4, spin)
		jobs := 20_000
		if testing.Short() {
			jobs = 2_000
		}
		for i := range jobs {
			n := 2 + i%37
			job := &tally{make([]atomic.Int32, n)}
			team.split(n, 1, (1+i%3)*wakeWork/2, job)
			for j := range job.seen {
				if got := job.seen[j].Load(); got != 1 {
					t.Fatalf("job %d: piece %d run %d times", i, j, got)
				}
			}
		}
		team.close()
	}
}

// meeting is done when two threads are in it at once.
type meeting struct{ arrived atomic.Int64 }

func (m *meeting) run(_, _, _ int) {
	for full := (m.arrived.Add(1) + 1) / 2 * 2; m.arrived.Load() < full; {
		runtime.Gosched()
	}
}

// BenchmarkTeamHandOver is what a second thread costs a job.
func BenchmarkTeamHandOver(b *testing.B) {
	for _, spin := range []bool{false, true} {
		b.Run(fmt.Sprintf("spin=%v", spin), func(b *testing.B) {
			team := newTeam(2, spin)
			defer team.close()
			job := &meeting{}
			b.ReportAllocs()
			for b.Loop() {
				team.split(2, 1, wakeWork, job)
			}
		})
	}
}
