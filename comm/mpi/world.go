//go:build cgo && linux

package mpi

// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"
	"unsafe"

	"triax/comm"
	"triax/tensor"
)

// World is this process's place among the processes that a launcher started together.
type World struct {
	eng        *engine
	comm       C.tx_handle
	rank, size int
	heard      unsafe.Pointer
	closed     bool // on the engine's thread

	failed chan struct{} // closed with the first failure
	state  func() string // what this rank is doing, for a roll call

	mu      sync.Mutex
	cause   error
	changed chan struct{} // closed and replaced when a note has come
	lines   map[sender][]head
	sent    map[int]int // messages to each rank
	joins   map[string][]int
	turn    int // of the roll call under way
	answers map[int]string
	texts   []string // of rank 0, not yet read
}

// Open initialises MPI. family is the launcher's, "" where it is not known; localRanks is how many processes share this host.
// A process can do it once.
func Open(family string, localRanks int) (*World, error) {
	e, err := start(family, max(1, localRanks))
	if err != nil {
		return nil, err
	}
	all := make([]int, e.size)
	for i := range all {
		all[i] = i
	}
	return e.world(all)
}

// world makes a world of some ranks, all of which call it.
func (e *engine) world(ranks []int) (*World, error) {
	w := &World{
		eng: e, rank: slices.Index(ranks, e.rank), size: len(ranks), heard: C.malloc(noteSize), failed: make(chan struct{}),
		changed: make(chan struct{}), lines: map[sender][]head{}, sent: map[int]int{}, joins: map[string][]int{}, state: func() string { return "" },
	}
	done := make(chan error, 1)
	e.do(func() {
		err := e.split(e.lib.table.world, ranks, &w.comm)
		if err == nil {
			w.listen()
		}
		done <- err
	})
	return w, <-done
}

// Size and Rank are the launcher's; Library is the MPI library's own name.
func (w *World) Size() int       { return w.size }
func (w *World) Rank() int       { return w.rank }
func (w *World) Library() string { return w.eng.lib.about + " (" + w.eng.lib.path + ")" }

// Report sets what this rank answers when others ask what it is doing.
func (w *World) Report(state func() string) {
	done := make(chan struct{})
	w.eng.do(func() { w.state = state; close(done) })
	<-done
}

// RemoteError is the failure of another rank, as it told it.
type RemoteError struct {
	Rank int
	Text string
}

func (e *RemoteError) Error() string { return e.Text }

// fail notes the first failure.
func (w *World) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil {
		w.cause = err
		close(w.failed)
	}
}

// Failed is closed when another rank has stopped the run; Cause then says why.
func (w *World) Failed() <-chan struct{} { return w.failed }
func (w *World) Cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

// Stop tells all other ranks that this one has failed, and waits a moment for the news to leave.
func (w *World) Stop(cause error) {
	left := make(chan struct{}, w.size)
	w.eng.do(func() {
		for r := range w.size {
			if r != w.rank {
				w.tell(r, note{Kind: noteStop, Text: cause.Error()}, func(error) { left <- struct{}{} })
			}
		}
	})
	limit := time.After(time.Second)
	for range w.size - 1 {
		select {
		case <-left:
		case <-limit:
			return
		}
	}
}

// leave ends a world but not MPI.
func (w *World) leave() {
	done := make(chan struct{})
	w.eng.do(func() {
		w.closed = true
		w.eng.hush(w)
		close(done)
	})
	<-done
}

// Close ends MPI, together with all other ranks.
func (w *World) Close() error { w.leave(); return w.eng.close() }

// Transport is this rank's end. Received messages become tensors of heap.
func (w *World) Transport(heap *tensor.Heap) comm.Transport { return &transport{World: w, heap: heap} }

type transport struct {
	*World
	heap *tensor.Heap
}

// until waits until ready, which is asked with the lock held after every note.
func (w *World) until(ctx context.Context, ready func() bool) error {
	w.eng.waiting.Add(1)
	defer w.eng.waiting.Add(-1)
	for first := true; ; first = false {
		w.mu.Lock()
		ok, changed := ready(), w.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		if first {
			w.eng.do(func() {}) // it may be asleep
		}
		select {
		case <-changed:
		case <-w.failed:
			return w.Cause()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Join makes a group's communicator. The members first tell each other that they are there, so that waiting can be given up and a member
// that is missing be named.
func (t *transport) Join(ctx context.Context, name string, ranks []int) (comm.Collective, error) {
	w := t.World
	place := slices.Index(ranks, w.rank)
	if place < 0 {
		return nil, fmt.Errorf("rank %d is not among %v", w.rank, ranks)
	}
	for i, r := range ranks {
		if r < 0 || r >= w.size || slices.Contains(ranks[:i], r) {
			return nil, fmt.Errorf("ranks %v of %d are not all different and there", ranks, w.size)
		}
	}
	h := fnv.New64a()
	fmt.Fprint(h, name, ranks)
	key := fmt.Sprintf("%.200s %x", name, h.Sum64())
	w.eng.do(func() {
		for _, r := range ranks {
			if r != w.rank {
				w.tell(r, note{Kind: noteJoin, Text: key}, func(err error) {
					if err != nil {
						w.fail(err)
					}
				})
			}
		}
	})
	if err := w.until(ctx, func() bool { return len(w.joins[key]) == len(ranks)-1 }); err != nil {
		return nil, err
	}
	w.mu.Lock()
	delete(w.joins, key)
	w.mu.Unlock()
	g := newGroup(w, name, slices.Clone(ranks), place)
	done := make(chan error, 1)
	w.eng.do(func() { done <- w.eng.split(w.comm, ranks, &g.comm) })
	select {
	case err := <-done:
		return g, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
