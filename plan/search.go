package plan

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"triax/configs"
)

// Choice is one legal layout and its price.
type Choice struct {
	Config *configs.Config
	Plan   *Plan
}

// Limits bound a search.
type Limits struct {
	Ranks  int
	Memory float64 // bytes a device; 0 means the cluster's
	// Keep is how many of the fastest layouts are wanted, beside the front of memory against time; 0 means all that fit. Layouts whose bounds say that they
	// can be in neither are not priced.
	Keep int
	// Everything turns off all pruning: for tests.
	Everything bool
	// Workers is how many layouts are priced at a time; 0 means one a core.
	Workers int
	// Each, where it is set, is told of every layout that fits as soon as it is priced, one at a time.
	Each func(Choice)
}

// Found is what a search comes back with.
type Found struct {
	Best   []Choice // that fit, fastest first; with Limits.Keep no more than that
	Front  []Choice // of those, the ones that no other beats in both time and memory, fastest first
	Tried  int      // layouts priced
	Legal  int      // layouts that the rules allow
	Fit    int      // of those priced, the ones that fit
	Missed *Choice  // where none fits, the one that misses least
}

// Search prices every legal layout of a model and batch on so many ranks: tensor, pipeline, context, expert and data degrees, hybrid sharding, ZeRO stage, schedule,
// cut of the layers, microbatch size, recomputation, sequence parallelism, order of the axes. Skipped are layouts that closed formulas rule out (see Bounds): those that
// cannot fit, and with Limits.Keep those that can be neither among the fastest nor on the front.
func Search(ctx context.Context, base *configs.Config, c Cluster, l Limits) (*Found, error) {
	if l.Memory == 0 {
		l.Memory = c.Memory
	}
	c.Memory = l.Memory
	var schedules Schedules
	list, err := bounded(ctx, candidates(base, c, l.Ranks), NewBounds(base, c, &schedules))
	if err != nil {
		return nil, err
	}
	found := &Found{Legal: len(list)}
	if len(list) == 0 {
		return nil, configs.Problems{{Field: "gpus", Value: fmt.Sprint(l.Ranks), Rule: "no layout of this model and batch is legal on so many ranks",
			Hint: "choose a number that shares factors with model.layers, model.heads and train.batch"}}
	}
	s := &searching{Limits: l, found: found, list: list}
	g, inside := errgroup.WithContext(ctx)
	for range cmp.Or(l.Workers, runtime.GOMAXPROCS(0)) {
		g.Go(func() error { return s.work(inside, NewPlanner(c, &schedules)) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	fits := s.fits
	slices.SortFunc(fits, func(a, b Choice) int { return better(a.Plan, b.Plan) })
	found.Best = fits
	if l.Keep > 0 {
		found.Best = fits[:min(l.Keep, len(fits))]
	}
	least := 0.0
	for _, x := range fits {
		if m := x.Plan.Memory[x.Plan.Worst].Peak; len(found.Front) == 0 || m < least {
			found.Front = append(found.Front, x)
			least = m
		}
	}
	if len(fits) == 0 {
		if err := s.nearest(ctx, NewPlanner(c, &schedules)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// nearest finds the layout that misses least where none fits: by what each holds at least, until that exceeds what the best so far holds.
func (s *searching) nearest(ctx context.Context, pl *Planner) error {
	held := func(x Choice) float64 { return x.Plan.Memory[x.Plan.Worst].Peak }
	for _, x := range s.misses {
		if s.found.Missed == nil || held(x) < held(*s.found.Missed) {
			s.found.Missed = &x
		}
	}
	list := slices.Clone(s.list)
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.bytes, b.bytes) })
	for _, x := range list {
		if s.found.Missed != nil && x.bytes >= held(*s.found.Missed) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p, err := pl.Plan(x.cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", label(x.cfg), err)
		}
		p.Step.Timeline = nil
		s.found.Tried++
		if m := (Choice{x.cfg, p}); s.found.Missed == nil || held(m) < held(*s.found.Missed) {
			s.found.Missed = &m
		}
	}
	return nil
}

// bounded orders layouts by the least time that they can take.
func bounded(ctx context.Context, list []*configs.Config, b *Bounds) ([]candidate, error) {
	out := make([]candidate, len(list))
	for i, cfg := range list {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		seconds, bytes, err := b.Of(cfg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label(cfg), err)
		}
		out[i] = candidate{cfg, seconds, bytes}
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(a.seconds, b.seconds) })
	return out, nil
}

// candidate is a layout, resolved, and what it takes and holds at least.
type candidate struct {
	cfg            *configs.Config
	seconds, bytes float64
}

// searching is a search under way, shared by its workers.
type searching struct {
	Limits
	list []candidate
	next atomic.Int64

	mu           sync.Mutex
	found        *Found
	fits, misses []Choice
	fastest      []float64    // times of the Keep fastest so far, in order
	front        [][2]float64 // times and bytes of the front so far, in order of time
}

func (s *searching) work(ctx context.Context, pl *Planner) error {
	for {
		i := int(s.next.Add(1)) - 1
		if i >= len(s.list) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		x := s.list[i]
		if s.hopeless(x) {
			continue
		}
		p, err := pl.Plan(x.cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", label(x.cfg), err)
		}
		p.Step.Timeline = nil // the planner's own
		s.add(Choice{x.cfg, p})
	}
}

// hopeless says that a layout cannot fit, or is neither among the fastest nor on the front, whatever its price.
func (s *searching) hopeless(x candidate) bool {
	if s.Everything {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.bytes > s.Memory {
		return true
	}
	if s.Keep == 0 || len(s.fastest) < s.Keep || x.seconds <= s.fastest[len(s.fastest)-1] {
		return false
	}
	for _, f := range s.front {
		if f[0] < x.seconds && f[1] < x.bytes {
			return true
		}
	}
	return false
}

// add takes a priced layout in.
func (s *searching) add(x Choice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Tried++
	if !x.Plan.Fits {
		s.misses = append(s.misses, x)
		return
	}
	s.found.Fit++
	s.fits = append(s.fits, x)
	if s.Each != nil {
		s.Each(x)
	}
	if s.Keep == 0 {
		return
	}
	t, m := x.Plan.Step.Seconds, x.Plan.Memory[x.Plan.Worst].Peak
	at, _ := slices.BinarySearch(s.fastest, t)
	s.fastest = slices.Insert(s.fastest, at, t)
	s.fastest = s.fastest[:min(len(s.fastest), s.Keep)]
	for _, f := range s.front {
		if f[0] <= t && f[1] <= m {
			return
		}
	}
	s.front = slices.DeleteFunc(s.front, func(f [2]float64) bool { return f[0] >= t && f[1] >= m })
	s.front = append(s.front, [2]float64{t, m})
}

// better orders plans by time, then memory, then name.
func better(a, b *Plan) int {
	switch x, y := a.Step.Seconds, b.Step.Seconds; {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	switch x, y := a.Memory[a.Worst].Peak, b.Memory[b.Worst].Peak; {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return slices.Compare([]byte(a.Layout), []byte(b.Layout))
}
