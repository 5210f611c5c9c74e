package cpu

import "sync/atomic"

// task is an operation cut over its rows (or columns, or chunks): run does those from lo up to hi.
// Pieces must not depend on one another, nor results on where the cuts fall.
type task interface{ run(worker, lo, hi int) }

// team is a fixed set of threads that share out tasks. The caller is worker 0; a team of one has no
// goroutines at all.
//
// Handing a job to a parked goroutine takes tens of microseconds, as long as many a kernel; a
// thread that spins takes one. So with spin, threads that wait look for work for a while before they park.
type team struct {
	size int
	spin int // looks before parking

	job     task
	n, unit int

	epoch  atomic.Uint64 // jobs given out so far
	left   atomic.Int64  // workers still at the present job
	asleep []atomic.Bool // parked, by worker; [0] is the caller
	wake   []chan struct{}
	failed atomic.Pointer[any] // first panic of the present job
	closed bool
}

// spinLooks is some 200 microseconds, twice what waking a parked thread costs: with fewer, one late wake-up makes the
// others park, and the next job late again.
const spinLooks = 200_000

// serialWork is the cost, in elements touched, below which a job is not worth sharing.
const serialWork = 1 << 14

func newTeam(size int, spin bool) *team {
	t := &team{size: size, asleep: make([]atomic.Bool, size), wake: make([]chan struct{}, size)}
	if spin {
		t.spin = spinLooks
	}
	for w := range t.wake {
		t.wake[w] = make(chan struct{}, 1)
		if w > 0 {
			go t.work(w)
		}
	}
	return t
}

// split runs job over 0..n on all threads, cut at multiples of unit. work is the job's rough cost in
// elements: small jobs stay on the caller's thread.
func (t *team) split(n, unit, work int, job task) {
	if n <= 0 {
		return
	}
	if t.size == 1 || n <= unit || work < serialWork {
		job.run(0, 0, n)
		return
	}
	t.job, t.n, t.unit = job, n, unit
	t.left.Store(int64(t.size))
	t.epoch.Add(1)
	for w := 1; w < t.size; w++ {
		t.rouse(w)
	}
	t.part(0)
	t.await(0, func() bool { return t.left.Load() == 0 })
	t.job = nil
	if p := t.failed.Swap(nil); p != nil {
		panic(*p)
	}
}

// part is one worker's share of the present job.
func (t *team) part(w int) {
	defer func() {
		if p := recover(); p != nil {
			first := p // a copy, so that only a panic allocates
			t.failed.CompareAndSwap(nil, &first)
		}
		if t.left.Add(-1) == 0 && w != 0 {
			t.rouse(0)
		}
	}()
	blocks := (t.n + t.unit - 1) / t.unit
	lo, hi := blocks*w/t.size*t.unit, min(blocks*(w+1)/t.size*t.unit, t.n)
	if lo < hi {
		t.job.run(w, lo, hi)
	}
}

func (t *team) work(w int) {
	for seen := uint64(1); ; seen++ {
		t.await(w, func() bool { return t.epoch.Load() >= seen })
		if t.closed {
			return
		}
		t.part(w)
	}
}

// await returns when ready: it spins, then parks until roused.
func (t *team) await(w int, ready func() bool) {
	for range t.spin {
		if ready() {
			return
		}
	}
	for !ready() {
		t.asleep[w].Store(true)
		if ready() && t.asleep[w].CompareAndSwap(true, false) {
			return
		}
		<-t.wake[w]
	}
}

// rouse wakes worker w if it is parked, or about to be.
func (t *team) rouse(w int) {
	if t.asleep[w].CompareAndSwap(true, false) {
		t.wake[w] <- struct{}{}
	}
}

func (t *team) close() {
	if t.closed {
		return
	}
	t.closed = true
	t.epoch.Add(1)
	for w := 1; w < t.size; w++ {
		t.rouse(w)
	}
}
