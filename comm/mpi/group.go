//go:build cgo && linux

package mpi

// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"triax/comm"
	"triax/tensor"
)

// group is this rank's end of a group. It implements comm.Collective.
type group struct {
	world *World
	comm  C.tx_handle
	name  string
	ranks []int
	place int
	busy  atomic.Bool
	given atomic.Bool    // a call was given up: the members are out of step
	terms unsafe.Pointer // in C memory: this member's, then all members'
}

func newGroup(w *World, name string, ranks []int, place int) *group {
	return &group{world: w, name: name, ranks: ranks, place: place, terms: C.calloc(C.size_t(len(ranks)+1), termsSize)}
}

func (g *group) AllReduce(ctx context.Context, t *tensor.Tensor, op comm.Op) (comm.Times, error) {
	return g.collective(ctx, termsOf(comm.KindAllReduce, op, 0, t, t), t, t)
}

func (g *group) ReduceScatter(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.collective(ctx, termsOf(comm.KindReduceScatter, comm.Sum, 0, dst, src), dst, src)
}

func (g *group) AllGather(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.collective(ctx, termsOf(comm.KindAllGather, comm.Sum, 0, dst, src), dst, src)
}

func (g *group) Broadcast(ctx context.Context, t *tensor.Tensor, root int) (comm.Times, error) {
	return g.collective(ctx, termsOf(comm.KindBroadcast, comm.Sum, root, t, t), t, t)
}

func (g *group) AllToAll(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.collective(ctx, termsOf(comm.KindAllToAll, comm.Sum, 0, dst, src), dst, src)
}

func (g *group) Barrier(ctx context.Context) (comm.Times, error) {
	return g.collective(ctx, termsOf(comm.KindBarrier, comm.Sum, 0, nil, nil), nil, nil)
}

// call is a collective under way, on the engine's thread.
type call struct {
	*group
	comm.Terms
	dst, src *tensor.Tensor
	pin      runtime.Pinner
	met      time.Time
	scratch  []unsafe.Pointer
	done     chan error
}

func (g *group) collective(ctx context.Context, t comm.Terms, dst, src *tensor.Tensor) (comm.Times, error) {
	if !g.busy.CompareAndSwap(false, true) {
		panic(fmt.Sprintf("mpi: group %s: rank %d calls %s while a call of its own is under way", g.name, g.ranks[g.place], t.Kind))
	}
	defer g.busy.Store(false)
	if g.given.Load() {
		return comm.Times{}, fmt.Errorf("group %s: an earlier call was given up", g.name)
	}
	if ctx.Err() != nil {
		g.given.Store(true)
		return comm.Times{}, context.Cause(ctx)
	}
	start := time.Now()
	c := &call{group: g, Terms: t, dst: dst, src: src, done: make(chan error, 1)}
	if dst != nil {
		dst.Retain()
		src.Retain()
	}
	if !comm.Beside(ctx) {
		g.world.eng.waiting.Add(1)
		defer g.world.eng.waiting.Add(-1)
	}
	g.world.eng.do(c.meet)
	select {
	case err := <-c.done:
		if c.met.IsZero() {
			return comm.Times{}, err
		}
		return comm.Times{Wait: c.met.Sub(start), Move: time.Since(c.met)}, err
	case <-ctx.Done():
		g.given.Store(true)
		return comm.Times{}, context.Cause(ctx)
	}
}

// meet gathers what all members call.
func (c *call) meet() {
	putTerms(unsafe.Slice((*byte)(c.terms), termsSize), c.Terms)
	all := unsafe.Add(c.terms, termsSize)
	c.world.eng.post("Iallgather", func(r *C.tx_handle) C.int {
		return C.tx_iallgather(c.world.eng.lib.table, c.terms, all, termsSize, C.tx_byte, c.comm, r)
	}, func(err error) {
		if err != nil {
			c.end(err)
			return
		}
		c.met = time.Now()
		list := make([]comm.Terms, len(c.ranks))
		for i := range list {
			list[i] = readTerms(unsafe.Slice((*byte)(unsafe.Add(all, i*termsSize)), termsSize))
		}
		if err := comm.Agree(c.name, c.ranks, list); err != nil || c.src == nil || max(c.Len, c.Result) == 0 {
			c.end(err)
			return
		}
		c.move()
	})
}

// end ends the call, and gives back what it held.
func (c *call) end(err error) {
	c.pin.Unpin()
	if c.dst != nil {
		c.dst.Release()
		c.src.Release()
	}
	for _, p := range c.scratch {
		C.free(p)
	}
	c.done <- err
}

// post is one call of the library.
type post struct {
	name string
	f    func(r *C.tx_handle) C.int
}

// run posts calls at once, and goes on when all have ended.
func (c *call) run(posts []post, then func()) {
	left := len(posts)
	var first error
	for _, p := range posts {
		c.world.eng.post(p.name, p.f, func(err error) {
			if first == nil {
				first = err
			}
			if left--; left > 0 {
				return
			}
			if first != nil {
				c.end(first)
				return
			}
			then()
		})
	}
}

// finish is what follows the last calls.
func (c *call) finish() { c.end(nil) }
