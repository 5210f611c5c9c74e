package pp_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"triax/comm"
	"triax/comm/local"
	"triax/pp"
	"triax/schedule"
	"triax/tensor"
)

// spec is what crosses the boundaries in these tests: 32 bytes.
var spec = comm.Spec{Kind: tensor.Activations, DType: tensor.F64, Shape: []int{4}}

// line is one pipeline: its ranks' runners over toy stages, in one world.
type line struct {
	s       *schedule.Schedule
	world   *local.World
	heaps   []*tensor.Heap
	runners []*pp.Runner
	toys    []*toy // by virtual stage
	ledgers []*comm.Ledger
	spans   [][]pp.Timing // by rank
	begin   time.Time
}

// newLine builds the runners of a schedule. Each op sleeps for cost of it; nil means no time. before, when set, runs
// ahead of every op of every rank and may fail it.
func newLine(s *schedule.Schedule, cost func(schedule.Op) time.Duration, before func(rank int, op schedule.Op) error, opts ...local.Option) *line {
	p := len(s.Ranks)
	l := &line{s: s, world: local.New(p, opts...), toys: make([]*toy, s.Stages), spans: make([][]pp.Timing, p)}
	order := make([]int, p)
	for r := range order {
		order[r] = r
	}
	for r := range p {
		heap, ledger := tensor.NewHeap(nil, true), &comm.Ledger{}
		do := func(ctx context.Context, op schedule.Op) error {
			if before != nil {
				if err := before(r, op); err != nil {
					return err
				}
			}
			return sleep(ctx, cost, op)
		}
		run := &pp.Runner{
			Schedule: s, Rank: r, World: order, Stages: map[int]pp.Stage{}, Message: spec,
			Wire: l.world.Rank(r, heap), Ledger: ledger,
			Update: func(ctx context.Context) error { return do(ctx, schedule.Op{Kind: schedule.U}) },
			OnOp:   func(t pp.Timing) { l.spans[r] = append(l.spans[r], t) },
		}
		for stage, place := range s.Place {
			if place == r {
				l.toys[stage] = newToy(stage, s.Stages, heap, do)
				run.Stages[stage] = l.toys[stage]
			}
		}
		l.heaps, l.ledgers, l.runners = append(l.heaps, heap), append(l.ledgers, ledger), append(l.runners, run)
	}
	return l
}

func sleep(ctx context.Context, cost func(schedule.Op) time.Duration, op schedule.Op) error {
	if cost == nil || cost(op) == 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(cost(op)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// step runs all ranks once and returns the first error, with its rank.
func (l *line) step(ctx context.Context) error {
	l.begin = time.Now()
	for r := range l.spans {
		l.spans[r] = l.spans[r][:0]
	}
	g, ctx := errgroup.WithContext(ctx)
	for r, run := range l.runners {
		g.Go(func() error {
			if err := run.Run(ctx); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// close gives back what stages and mailboxes still hold, and reports memory that nobody gave back.
func (l *line) close(t testing.TB) {
	t.Helper()
	l.world.Close()
	for _, x := range l.toys {
		x.drop()
	}
	for r, h := range l.heaps {
		if now := h.Total().Now; now != 0 {
			t.Errorf("rank %d: %d bytes were never given back", r, now)
		}
	}
}

// results is everything that a step computes: each stage's weight gradient and the losses.
func (l *line) results() (grads, losses []float64) {
	for _, x := range l.toys {
		grads = append(grads, x.grad)
	}
	last := l.toys[l.s.Stages-1]
	for _, micro := range slices.Sorted(maps.Keys(last.losses)) {
		losses = append(losses, last.losses[micro])
	}
	return grads, losses
}

// made makes a named schedule with its own number of chunks.
func made(t testing.TB, name string, p, m int) *schedule.Schedule {
	t.Helper()
	s, err := schedule.New(name, p, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
