package report

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"triax/configs"
	"triax/plan"
)

// Search is a search whose front can be looked at while it grows. It may be used by several goroutines.
type Search struct {
	base    *configs.Config
	cluster plan.Cluster
	ranks   int
	// Workers is how many layouts are priced at a time; 0 means one a core.
	Workers int

	mu    sync.Mutex
	front []found // fastest first, memory falling
	cloud []Point
	seen  int
	done  *plan.Found
	err   error
}

type found struct {
	Point
	config *configs.Config
}

// NewSearch is a search that has not begun.
func NewSearch(base *configs.Config, c plan.Cluster, ranks int) *Search {
	return &Search{base: base, cluster: c, ranks: ranks}
}

// Run searches until all layouts are priced or ctx ends; what was found until then stays.
func (s *Search) Run(ctx context.Context) error {
	f, err := plan.Search(ctx, s.base, s.cluster, plan.Limits{Ranks: s.ranks, Workers: s.Workers, Each: s.add})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.err = f, err
	return err
}

// add takes a layout that fits.
func (s *Search) add(c plan.Choice) {
	p := found{PointOf(c.Plan), c.Config}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen++
	// A cloud of bounded size from however many: the distance between those that are kept doubles when it is full.
	if every := 1 + s.seen/(8*maxCloud); s.seen%every == 0 {
		s.cloud = append(s.cloud, p.Point)
		if len(s.cloud) > 2*maxCloud {
			for i := range maxCloud {
				s.cloud[i] = s.cloud[2*i]
			}
			s.cloud = s.cloud[:maxCloud]
		}
	}
	for _, q := range s.front {
		if q.Seconds <= p.Seconds && q.Memory <= p.Memory {
			return
		}
	}
	s.front = slices.DeleteFunc(s.front, func(q found) bool { return p.Seconds <= q.Seconds && p.Memory <= q.Memory })
	at, _ := slices.BinarySearchFunc(s.front, p.Seconds, func(q found, t float64) int { return cmp.Compare(q.Seconds, t) })
	s.front = slices.Insert(s.front, at, p)
}

// Front is what has been found so far.
func (s *Search) Front() *Front {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Front{Fit: s.seen, Tried: s.seen, Others: slices.Clone(s.cloud)}
	for _, p := range s.front {
		f.Front = append(f.Front, p.Point)
	}
	if s.done != nil {
		f.Done, f.Legal, f.Tried = true, s.done.Legal, s.done.Tried
	}
	return f
}

// Err is why a search ended early, nil while it runs.
func (s *Search) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Configs are the layouts of the front, in its order.
func (s *Search) Configs() (out []*configs.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.front {
		out = append(out, p.config)
	}
	return out
}
