package cpu

import (
	"runtime"
	"sync/atomic"
)

// task is an operation cut over its rows (or columns, or chunks): run does those from lo up to hi.
// Pieces must not depend on one another, nor results on where the cuts fall.
type task interface{ run(worker, lo, hi int) }

// team is a fixed set of threads that share out tasks. The caller is worker 0; a team of one has no
// goroutines at all.
//
// A job is cut into a few pieces a thread. The caller takes them from the front, the others from the back, until the two meet:
// threads that were slow, or woke late, simply do less, and pieces stay on the thread that had them in the last job of
// the same size.
//
// Handing a job to a parked goroutine takes tens of microseconds, as long as many a kernel; a
// thread that spins takes one. So with spin, threads that wait look for work for a while before they park.
type team struct {
	size int
	spin int // looks before parking

	job     task
	n, unit int // unit is that of a piece

	queue  atomic.Uint64 // the present job's number, and its pieces not yet taken: see span
	left   atomic.Int64  // pieces not yet done
	asleep []atomic.Bool // parked, by worker; [0] is the caller
	wake   []chan struct{}
	failed atomic.Pointer[any] // first panic of the present job
	closed atomic.Bool
}

const (
	// spinLooks is some 200 microseconds, twice what waking a parked thread costs: with fewer, one late wake-up makes the
	// others park, and the next job late again.
	spinLooks = 200_000

	// pieceWork is the least cost of a piece, in elements touched by vectors out of the second-level cache: some microseconds.
	pieceWork = 1 << 15
	// wakeWork is the cost below which a job is not worth waking a parked thread for.
	wakeWork = 1 << 19
	// piecesEach is how many pieces a thread gets of a large job: enough to even out threads of unequal speed.
	piecesEach = 6
)

func newTeam(size int, spin bool) *team {
	t := &team{size: size, asleep: make([]atomic.Bool, size), wake: make([]chan struct{}, size)}
	if spin && size <= runtime.GOMAXPROCS(0) {
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
	units := (n + unit - 1) / unit
	most := min(units, work/pieceWork, t.size*piecesEach)
	if t.size == 1 || most < 2 {
		job.run(0, 0, n)
		return
	}
	each := t.cut(units, most)
	pieces := (units + each - 1) / each
	t.job, t.n, t.unit = job, n, each*unit
	t.left.Store(int64(pieces))
	t.queue.Store(uint64(newSpan(spanOf(t.queue.Load()).number()+1, pieces)))
	if work >= wakeWork {
		for w := 1; w < t.size; w++ {
			t.rouse(w)
		}
	}
	for t.take(0) {
	}
	t.finish()
	t.job = nil
	if p := t.failed.Swap(nil); p != nil {
		panic(*p)
	}
}

// cut is how many units a piece gets when there should be about most pieces: so many that threads of equal speed have
// equally much to do.
func (t *team) cut(units, most int) int {
	usual := (units + most - 1) / most
	if usual >= 16 {
		return usual // uneven by little
	}
	load := func(each int) int {
		pieces := (units + each - 1) / each
		return (pieces + t.size - 1) / t.size * each
	}
	best := usual
	for each := usual + 1; each <= 2*usual; each++ {
		if load(each) < load(best) {
			best = each
		}
	}
	for each := usual - 1; each > 0 && 2*each >= usual; each-- {
		if load(each) < load(best) {
			best = each
		}
	}
	return best
}

// take does one piece of the present job, and is false when none is left. A piece taken keeps the job
// from ending, so what was read of it before is still true.
func (t *team) take(w int) bool {
	for {
		s := spanOf(t.queue.Load())
		if s.empty() {
			return false
		}
		rest, piece := s.front()
		if w != 0 {
			rest, piece = s.back()
		}
		if t.queue.CompareAndSwap(uint64(s), uint64(rest)) {
			t.do(w, piece)
			return true
		}
	}
}

func (t *team) do(w, piece int) {
	defer func() {
		if p := recover(); p != nil {
			first := p // a copy, so that only a panic allocates
			t.failed.CompareAndSwap(nil, &first)
		}
		if t.left.Add(-1) == 0 && w != 0 {
			t.rouse(0)
		}
	}()
	t.job.run(w, piece*t.unit, min((piece+1)*t.unit, t.n))
}

// finish waits for the pieces that others have taken.
func (t *team) finish() {
	for range t.spin {
		if t.left.Load() == 0 {
			return
		}
	}
	for t.left.Load() != 0 {
		t.park(0, func() bool { return t.left.Load() == 0 })
	}
}

func (t *team) work(w int) {
	ready := func() bool { return !spanOf(t.queue.Load()).empty() || t.closed.Load() }
	for idle := 0; ; idle++ {
		switch {
		case t.closed.Load():
			return
		case t.take(w):
			idle = 0
		case idle >= t.spin:
			t.park(w, ready)
			idle = 0
		}
	}
}

// park sleeps until roused, unless ready by now.
func (t *team) park(w int, ready func() bool) {
	t.asleep[w].Store(true)
	if ready() && t.asleep[w].CompareAndSwap(true, false) {
		return
	}
	<-t.wake[w]
}

// rouse wakes worker w if it is parked, or about to be.
func (t *team) rouse(w int) {
	if t.asleep[w].Load() && t.asleep[w].CompareAndSwap(true, false) {
		t.wake[w] <- struct{}{}
	}
}

func (t *team) close() {
	if t.closed.Swap(true) {
		return
	}
	for w := 1; w < t.size; w++ {
		t.rouse(w)
	}
}

// span is a job's number and its pieces lo up to hi not yet taken, in one word, so that taking one is one
// compare-and-swap.
type span uint64

const maxPieces = 1<<16 - 1

func spanOf(word uint64) span { return span(word) }

func newSpan(number uint32, pieces int) span { return span(number)<<32 | span(pieces) }

func (s span) number() uint32 { return uint32(s >> 32) }
func (s span) lo() int        { return int(s >> 16 & maxPieces) }
func (s span) hi() int        { return int(s & maxPieces) }
func (s span) empty() bool    { return s.lo() >= s.hi() }

// front and back take the first or the last piece.
func (s span) front() (rest span, piece int) { return s + 1<<16, s.lo() }
func (s span) back() (rest span, piece int)  { return s - 1, s.hi() - 1 }
