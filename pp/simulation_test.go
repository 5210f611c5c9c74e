package pp_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"triax/comm/local"
	"triax/schedule"
)

// price is one set of costs, as the runner's world and as the simulator read it.
type price struct {
	name  string
	time  func(schedule.Op) time.Duration
	move  func(schedule.Op, int, int) schedule.Transfer
	world []local.Option
}

// prices: equal ops and free transfers; ops that all differ; and both over links with latency and bandwidth, slow enough
// for messages to queue.
func prices() []price {
	even := func(o schedule.Op) time.Duration {
		return [schedule.NumKinds]time.Duration{schedule.F: 2, schedule.I: 2, schedule.W: 2, schedule.B: 4, schedule.R: 3, schedule.U: 1}[o.Kind] * time.Millisecond
	}
	uneven := func(o schedule.Op) time.Duration {
		return time.Duration(1+(7*o.Stage+11*int(o.Kind)+5*o.Micro)%9) * time.Millisecond
	}
	const latency = 3 * time.Millisecond
	const bytesPerSecond = 32 * 200 // 5 ms a message
	move := func(schedule.Op, int, int) schedule.Transfer {
		return schedule.Transfer{Latency: latency, Occupancy: 5 * time.Millisecond}
	}
	linked := []local.Option{local.Linked(latency, bytesPerSecond)}
	return []price{
		{"even", even, nil, nil},
		{"uneven", uneven, nil, nil},
		{"even linked", even, move, linked},
		{"uneven linked", uneven, move, linked},
	}
}

// TestRunEqualsSimulation: every op of every rank starts and ends when the simulator says, and waits for the causes that
// it says. The clock is synctest's, so equal means equal to the nanosecond.
func TestRunEqualsSimulation(t *testing.T) {
	ranks, micros := []int{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	if testing.Short() {
		ranks, micros = []int{1, 2, 4, 5}, []int{1, 3, 4, 8}
	}
	for _, name := range schedule.Names() {
		t.Run(name, func(t *testing.T) {
			for _, p := range ranks {
				for _, m := range micros {
					if schedule.Check(name, p, m, 0) != nil {
						continue // dualpipe-v needs 2p microbatches
					}
					s := made(t, name, p, m)
					for _, c := range prices() {
						t.Run(fmt.Sprintf("p%d_m%d_%s", p, m, c.name), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { runAgainstClock(t, s, c) })
						})
					}
				}
			}
		})
	}
}

func runAgainstClock(t *testing.T, s *schedule.Schedule, c price) {
	want, err := schedule.Simulate(s, schedule.Costs{Time: c.time, Move: c.move})
	if err != nil {
		t.Fatal(err)
	}
	l := newLine(s, c.time, nil, c.world...)
	defer l.close(t)
	if err := l.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(l.begin); took != want.Makespan {
		t.Errorf("took %v, the simulation %v", took, want.Makespan)
	}
	for r, spans := range want.Ranks {
		if len(spans) != len(l.spans[r]) {
			t.Fatalf("rank %d ran %d ops of %d", r, len(l.spans[r]), len(spans))
		}
		for i, span := range spans {
			got := l.spans[r][i]
			run := schedule.Span{Op: got.Op, Start: got.Start.Sub(l.begin), End: got.End.Sub(l.begin), Peer: got.Wait, Transfer: got.Move}
			if run != span {
				t.Fatalf("rank %d, op %d: ran %+v, simulated %+v", r, i, run, span)
			}
		}
	}
}
