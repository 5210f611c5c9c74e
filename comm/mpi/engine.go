//go:build cgo && linux

package mpi

// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// engine is the thread that makes all MPI calls of this process. Others give it commands.
type engine struct {
	lib      *library
	rank     int // in the library's world
	size     int
	cmds     chan func()
	wake     *int32       // in C memory: ends a poll
	waiting  atomic.Int32 // goroutines of the rank that wait for a call or a note, and do not compute
	ended    chan struct{}
	standing int // requests that are always there: receives of notes
	closing  bool

	reqs   []C.tx_handle // in C memory
	ends   []func(error) // by request; len is how many are under way
	notes  []*World      // by request: whose receive of notes it is, or nil
	poll   []C.int       // in C memory: which ended
	codes  []C.int
	spin   time.Duration
	splits int
}

// room is how many requests may be under way at a time.
const room = 1 << 15

// How the thread waits for what is under way. While the rank waits too, it polls: for so long as e.spin says after the last news, then between naps. While
// the rank computes, a call has waited for some time already before the thread naps for a share of that time: it costs the call that share, and
// computation next to nothing.
const (
	pollFor   = 20 * time.Microsecond
	nap       = 50 * time.Microsecond
	longNap   = 400 * time.Microsecond
	napShare  = 8
	spinAlone = 20 * time.Millisecond // where each process of this host has a core to poll on
	spinShort = 100 * time.Microsecond
	lookEvery = 4 * time.Millisecond // when nothing is under way
)

// start opens the library and initialises MPI in a thread of its own.
func start(family string, localRanks int) (*engine, error) {
	lib, err := load(family)
	if err != nil {
		return nil, err
	}
	e := &engine{
		lib: lib, cmds: make(chan func(), 1024), ended: make(chan struct{}), wake: (*int32)(C.calloc(1, 64)),
		reqs: unsafe.Slice((*C.tx_handle)(C.calloc(room, 8)), room), ends: make([]func(error), 0, room),
		poll: unsafe.Slice((*C.int)(C.calloc(room, 4)), room), codes: unsafe.Slice((*C.int)(C.calloc(room, 4)), room),
		spin: spinAlone,
	}
	if runtime.NumCPU() < localRanks {
		e.spin = spinShort // others need the core more
	}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		var rank, size C.int
		err := lib.check("Init_thread", C.tx_init(lib.table, &rank, &size))
		e.rank, e.size = int(rank), int(size)
		if err == nil {
			lib.about = lib.describe()
		}
		ready <- err
		if err == nil {
			e.loop()
		}
		close(e.ended)
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return e, nil
}

// do gives the thread a command.
func (e *engine) do(f func()) {
	e.cmds <- f
	atomic.StoreInt32(e.wake, 1)
}

// post adds a request; on the thread only. end hears how it ends.
func (e *engine) post(call string, f func(r *C.tx_handle) C.int, end func(error)) {
	n := len(e.ends)
	if n == room {
		end(fmt.Errorf("more than %d requests under way", room))
		return
	}
	e.reqs[n] = 0
	if err := e.lib.check(call, f(&e.reqs[n])); err != nil {
		end(err)
		return
	}
	e.notes = append(e.notes, nil)
	e.ends = append(e.ends, func(err error) {
		if err != nil {
			err = fmt.Errorf("MPI_%s: %w", call, err)
		}
		end(err)
	})
}

func (e *engine) loop() {
	var quiet time.Time
	timer := time.NewTimer(lookEvery)
	for !e.closing {
		atomic.StoreInt32(e.wake, 0)
		for more := true; more && !e.closing; {
			select {
			case f := <-e.cmds:
				f()
				quiet = time.Now()
			default:
				more = false
			}
		}
		if e.closing {
			return
		}
		if len(e.ends) == e.standing && e.waiting.Load() == 0 {
			timer.Reset(lookEvery)
			select {
			case f := <-e.cmds:
				f()
				quiet = time.Now()
			case <-timer.C:
			}
			if !e.closing {
				e.look(0)
			}
			continue
		}
		if e.look(pollFor) {
			quiet = time.Now()
		} else if d := e.rest(time.Since(quiet)); d > 0 {
			C.tx_sleep(C.int64_t(d))
		}
	}
}

// rest is how long the thread naps when there has been no news for a while.
func (e *engine) rest(quiet time.Duration) time.Duration {
	switch {
	case e.waiting.Load() > 0 && quiet > e.spin:
		return nap
	case e.waiting.Load() == 0 && quiet > spinShort:
		return min(max(nap, quiet/napShare), longNap)
	}
	return 0
}

// look polls once, and ends what has ended.
func (e *engine) look(d time.Duration) bool {
	n := len(e.ends)
	if n == 0 {
		return false
	}
	k := int(C.tx_poll(e.lib.table, &e.reqs[0], C.int(n), &e.poll[0], &e.codes[0], (*C.int)(unsafe.Pointer(e.wake)), C.int64_t(d)))
	type over struct {
		end func(error)
		err error
	}
	done := make([]over, 0, k)
	for j := k - 1; j >= 0; j-- { // from the highest, so that the last one can take its place
		i := int(e.poll[j])
		var err error
		if code := e.codes[j]; code != 0 {
			err = e.lib.check("Test", code)
		}
		done = append(done, over{e.ends[i], err})
		last := len(e.ends) - 1
		e.ends[i], e.reqs[i] = e.ends[last], e.reqs[last]
		e.notes[i] = e.notes[last]
		e.ends[last] = nil
		e.ends, e.notes = e.ends[:last], e.notes[:last]
	}
	for j := len(done) - 1; j >= 0; j-- {
		done[j].end(done[j].err)
	}
	return k > 0
}

// split makes a communicator of some ranks of the world. All of them call it, and are known to.
func (e *engine) split(from C.tx_handle, ranks []int, to *C.tx_handle) error {
	list := make([]C.int, len(ranks))
	for i, r := range ranks {
		list[i] = C.int(r)
	}
	return e.lib.check("Comm_create_group", C.tx_split(e.lib.table, from, &list[0], C.int(len(list)), 1, to))
}

// hush cancels a world's receive of notes; on the thread.
func (e *engine) hush(w *World) {
	for i, of := range e.notes {
		if of == w {
			C.tx_cancel(e.lib.table, &e.reqs[i])
		}
	}
}

// close ends MPI; what is still under way after a while is the sign of a run that was stopped, and ends with the process.
func (e *engine) close() error {
	left := make(chan int, 1)
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		e.do(func() { left <- len(e.ends) - e.standing })
		if <-left == 0 || time.Now().After(end) {
			break
		}
	}
	err := make(chan error, 1)
	e.do(func() {
		e.closing = true
		err <- e.lib.check("Finalize", C.tx_finalize(e.lib.table))
	})
	select {
	case e := <-err:
		return e
	case <-time.After(time.Minute): // others may have more to do at their end
		return fmt.Errorf("MPI_Finalize does not end")
	}
}
