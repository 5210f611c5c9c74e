package local

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"triax/comm"
	"triax/tensor"
)

// World is the ranks of one process.
type World struct {
	size  int
	opts  options
	boxes []*mailbox // by receiver
	links links

	mu     sync.Mutex
	groups map[string]*group
}

// New makes a world of size ranks. Each rank's goroutine takes its transport by Rank.
func New(size int, opts ...Option) *World {
	if size < 1 {
		panic(fmt.Sprintf("local: world of %d ranks", size))
	}
	w := &World{size: size, groups: map[string]*group{}, links: links{free: map[[2]int]*link{}}}
	for _, o := range opts {
		o(&w.opts)
	}
	if size <= runtime.GOMAXPROCS(0) {
		w.opts.spin = spinRounds
	}
	for range size {
		w.boxes = append(w.boxes, newMailbox())
	}
	return w
}

// Rank is the transport of one rank. Received messages become tensors of heap.
func (w *World) Rank(rank int, heap *tensor.Heap) comm.Transport {
	if rank < 0 || rank >= w.size {
		panic(fmt.Sprintf("local: rank %d of %d", rank, w.size))
	}
	return &transport{world: w, rank: rank, heap: heap}
}

// Close releases messages that nobody received. All ranks must have stopped.
func (w *World) Close() {
	for _, b := range w.boxes {
		b.drain()
	}
}

// transport is one rank's end. It implements comm.Transport.
type transport struct {
	world *World
	rank  int
	heap  *tensor.Heap
}

func (t *transport) Rank() int { return t.rank }
func (t *transport) Size() int { return t.world.size }

// Join opens this rank's end of a group. The first to come makes it.
func (t *transport) Join(_ context.Context, name string, ranks []int) (comm.Collective, error) {
	place := slices.Index(ranks, t.rank)
	if place < 0 {
		return nil, fmt.Errorf("rank %d is not among %v", t.rank, ranks)
	}
	w := t.world
	for i, r := range ranks {
		if r < 0 || r >= w.size || slices.Contains(ranks[:i], r) {
			return nil, fmt.Errorf("ranks %v of %d are not all different and there", ranks, w.size)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name]
	if g == nil {
		g = newGroup(name, slices.Clone(ranks), w.opts.spin)
		w.groups[name] = g
	}
	if !slices.Equal(g.ranks, ranks) {
		return nil, fmt.Errorf("rank %d joins with ranks %v, another joined with %v", t.rank, ranks, g.ranks)
	}
	if g.joined[place] {
		return nil, fmt.Errorf("rank %d joins twice", t.rank)
	}
	g.joined[place] = true
	return &member{group: g, place: place}, nil
}
