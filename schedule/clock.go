package schedule

import (
	"fmt"
	"time"
)

// run is one pass of a Simulator over its line.
type run struct {
	*Simulator
	c       Costs
	longest time.Duration // a single time over this might overflow the sum

	met   bool          // the ranks have met before U
	meets time.Duration // when
	peer  []time.Duration
	moved []time.Duration
}

// walk runs all steps in line. A blocking line has messages as steps of their own: what they cost both ranks
// gathers in peer and moved until the rank's next op.
func (w *run) walk(line []step) error {
	blocking := w.c.Blocking && w.c.Move != nil
	if blocking {
		w.peer = make([]time.Duration, len(w.free))
		w.moved = make([]time.Duration, len(w.free))
	}
	for i := range line {
		st := &line[i]
		if st.move {
			if err := w.message(st); err != nil {
				return err
			}
			continue
		}
		d := w.c.Time(st.op)
		if d < 0 || d > w.longest {
			return fmt.Errorf("schedule %s: op %v takes %v: must be 0 to %v", w.s.Name, st.op, d, w.longest)
		}
		if st.op.Kind == R && w.c.Beside {
			w.reduce(st, d)
			continue
		}
		span := w.start(st)
		if blocking {
			span.Peer += w.peer[st.rank]
			span.Transfer += w.moved[st.rank]
			w.peer[st.rank], w.moved[st.rank] = 0, 0
		}
		span.End = span.Start + d
		w.free[st.rank] = span.End
		if st.make >= 0 {
			if err := w.deliver(st, span.End); err != nil {
				return err
			}
		}
	}
	return nil
}

// start finds when an op can start, and splits the idle time before it.
func (w *run) start(st *step) *Span {
	span := &w.out.Ranks[st.rank][st.slot]
	now := w.free[st.rank]
	*span = Span{Op: st.op, Start: now}
	switch {
	case st.need >= 0:
		span.Start = max(now, w.arrival[st.need])
		span.Peer = max(0, w.done[st.need]-now)
		span.Transfer = span.Start - now - span.Peer
	case st.op.Kind == U:
		span.Start = max(now, w.lane[st.rank])
		span.Transfer = span.Start - now
		if w.c.Barrier {
			all := w.barrier()
			span.Peer = all - span.Start
			span.Start = all
		}
	}
	return span
}

// barrier is when the last rank has come to U.
func (w *run) barrier() time.Duration {
	if !w.met {
		w.met = true
		for r := range w.free {
			w.meets = max(w.meets, w.free[r], w.lane[r])
		}
	}
	return w.meets
}

// reduce runs R on its rank's second lane, after the op before it and the reduction before it.
func (w *run) reduce(st *step, d time.Duration) {
	start := max(w.free[st.rank], w.lane[st.rank])
	w.lane[st.rank] = start + d
	w.out.Ranks[st.rank][st.slot] = Span{Op: st.op, Start: start, End: start + d}
}

// deliver sends a result on: it leaves when the link is free and arrives later, without costing the rank.
func (w *run) deliver(st *step, end time.Duration) error {
	w.done[st.make], w.arrival[st.make] = end, end
	if st.to < 0 || w.c.Move == nil {
		return nil
	}
	t, err := w.transfer(st)
	if err != nil {
		return err
	}
	leaves := max(end, w.links[st.link])
	w.links[st.link] = leaves + t.Occupancy
	w.arrival[st.make] = leaves + t.Occupancy + t.Latency
	return nil
}

func (w *run) transfer(st *step) (Transfer, error) {
	t := w.c.Move(st.op, int(st.rank), int(st.to))
	if t.Latency < 0 || t.Occupancy < 0 || t.Latency > w.longest || t.Occupancy > w.longest {
		return t, fmt.Errorf("schedule %s: sending the result of %v takes %v and %v: must be 0 to %v",
			w.s.Name, st.op, t.Latency, t.Occupancy, w.longest)
	}
	return t, nil
}

// message holds both ranks, from when the later one has come to it until it has arrived.
func (w *run) message(st *step) error {
	t, err := w.transfer(st)
	if err != nil {
		return err
	}
	from, to := st.rank, st.to
	meet := max(w.free[from], w.free[to])
	for _, r := range [2]int32{from, to} {
		w.peer[r] += meet - w.free[r]
		w.moved[r] += t.Latency + t.Occupancy
		w.free[r] = meet + t.Latency + t.Occupancy
	}
	return nil
}
