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
	"triax/nn"
	"triax/zero"
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
	// Everything turns off the pruning that skips layouts which cannot fit or cannot be best: for tests.
	Everything bool
	// Workers is how many layouts are priced at a time; 0 means one a core.
	Workers int
	// Each, where it is set, is told of every layout that fits as soon as it is priced, one at a time.
	Each func(Choice)
}

// Found is what a search comes back with.
type Found struct {
	Best   []Choice // that fit, fastest first
	Front  []Choice // of those, the ones that no other beats in both time and memory, fastest first
	Tried  int      // layouts priced
	Legal  int      // layouts that the rules allow
	Missed *Choice  // where none fits, the one that misses least
}

// Search prices every legal layout of a model and batch on so many ranks: tensor, pipeline and data degrees, hybrid sharding, ZeRO stage,
// schedule, microbatch size, recomputation, sequence parallelism. Layouts whose lasting states alone do not fit are
// skipped, which changes nothing: they would not fit with the rest either.
func Search(ctx context.Context, base *configs.Config, c Cluster, l Limits) (*Found, error) {
	if l.Memory == 0 {
		l.Memory = c.Memory
	}
	c.Memory = l.Memory
	list := candidates(base, c, l.Ranks)
	found := &Found{Legal: len(list)}
	if len(list) == 0 {
		return nil, configs.Problems{{Field: "gpus", Value: fmt.Sprint(l.Ranks), Rule: "no layout of this model and batch is legal on so many ranks",
			Hint: "choose a number that shares factors with model.layers, model.heads and train.batch"}}
	}
	var mu sync.Mutex
	var fits, misses []Choice
	g, ctx := errgroup.WithContext(ctx)
	var schedules Schedules
	var next atomic.Int64
	for range cmp.Or(l.Workers, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			pl := NewPlanner(c, &schedules)
			for {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return nil
				}
				cfg := list[i]
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if !l.Everything && leastStates(cfg, c) > l.Memory {
					continue
				}
				p, err := pl.Plan(cfg)
				if err != nil {
					return fmt.Errorf("%s: %w", label(configs.Resolved(cfg)), err)
				}
				p.Step.Timeline = nil // the planner's own
				mu.Lock()
				found.Tried++
				if p.Fits {
					fits = append(fits, Choice{cfg, p})
					if l.Each != nil {
						l.Each(fits[len(fits)-1])
					}
				} else {
					misses = append(misses, Choice{cfg, p})
				}
				mu.Unlock()
			}
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(fits, func(a, b Choice) int { return better(a.Plan, b.Plan) })
	found.Best = fits
	least := 0.0
	for _, x := range fits {
		if m := x.Plan.Memory[x.Plan.Worst].Peak; len(found.Front) == 0 || m < least {
			found.Front = append(found.Front, x)
			least = m
		}
	}
	if len(fits) == 0 && len(misses) > 0 {
		m := slices.MaxFunc(misses, func(a, b Choice) int {
			switch {
			case a.Plan.Room < b.Plan.Room:
				return -1
			case a.Plan.Room > b.Plan.Room:
				return 1
			}
			return 0
		})
		found.Missed = &m
	}
	return found, nil
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

// leastStates is a bound from below on what any rank holds: its share of weights, gradients and states if they were spread evenly.
func leastStates(cfg *configs.Config, c Cluster) float64 {
	r := configs.Resolved(cfg)
	block, _ := nn.MACs(nn.Config{ // matrices only: with no sequence there are no scores
		Width: r.Model.Width, Hidden: r.Model.Hidden, Heads: r.Model.Heads, KVHeads: r.Model.KVHeads, HeadDim: r.Model.HeadDim, Family: r.Model.Family,
	})
	n := block * float64(r.Model.Layers) / float64(r.Mesh.TP*r.Mesh.PP)
	d := float64(r.Mesh.DP)
	w, g, s := float64(c.element()), float64(c.GradientBytes), float64(c.StateBytes)
	if r.Model.LoRARank > 0 { // only adapters learn
		g, s = 0, 0
	}
	if r.Zero.Offload == zero.OffloadDisk {
		s = 0
	}
	switch r.Zero.Stage {
	case 1:
		s /= d
	case 2:
		g, s = g/d, s/d
	case 3:
		w, g, s = w/d, g/d, s/d
	}
	return n * (w + g + s)
}
