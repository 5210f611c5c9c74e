package schedule

import (
	"fmt"
	"math"
	"time"
)

// Simulate walks a schedule on a clock. Its error names the fault of a schedule that cannot be run, or a
// negative or overlong time. Many runs of one schedule are faster with a Simulator.
func Simulate(s *Schedule, c Costs) (*Timeline, error) {
	m, err := NewSimulator(s)
	if err != nil {
		return nil, err
	}
	return m.Run(c)
}

// Simulator runs one schedule again and again with different costs. What waits for what does not depend on
// times, so the ops are laid on one line once and a run is a single pass over it.
type Simulator struct {
	s       *Schedule
	line    []step
	arrival []time.Duration // when the result of F (first half) or of I or B (second half) can be used on its taker's rank
	done    []time.Duration // when it was made
	links   []time.Duration // when each link and direction is free again
	free    []time.Duration // when each rank is free again
	lane    []time.Duration // when the reductions of each rank are done
	out     Timeline

	lowered []step // the line with messages as steps of their own; nil until the first blocking run
}

// step is an op of the line, or in a lowered line a message.
type step struct {
	op   Op
	rank int32
	slot int32 // where its span goes in the rank's list
	need int32 // index into arrival of what it waits for from elsewhere; -1 for nothing
	make int32 // index into arrival of what it makes; -1 for nothing
	to   int32 // the rank that takes its result, -1 where that is its own or none
	link int32 // index into links
	move bool  // a message of a lowered line, from rank to to
}

// NewSimulator lays out a schedule. The error is Verify's for a schedule that is incomplete or deadlocks.
func NewSimulator(s *Schedule) (*Simulator, error) {
	t, err := index(s)
	if err != nil {
		return nil, err
	}
	p := len(s.Ranks)
	m := &Simulator{s: s, free: make([]time.Duration, p), lane: make([]time.Duration, p)}
	m.arrival = make([]time.Duration, 2*s.Stages*s.Micros)
	m.done = make([]time.Duration, len(m.arrival))
	order, err := t.order()
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	m.lay(t, order)
	m.out.Ranks = make([][]Span, p)
	for r := range m.out.Ranks {
		m.out.Ranks[r] = make([]Span, len(s.Ranks[r]))
	}
	return m, nil
}

// product is the index of o's result in arrival; -1 where it makes none.
func (m *Simulator) product(o Op) int32 {
	switch o.Kind {
	case F:
		return int32(o.Stage*m.s.Micros + o.Micro)
	case I, B:
		return int32((m.s.Stages+o.Stage)*m.s.Micros + o.Micro)
	}
	return -1
}

// lay makes the line from an order of all ops, every U moved to its end.
func (m *Simulator) lay(t *table, order []place) {
	s := m.s
	links := make(map[[2]int]int32)
	var updates []step
	for _, at := range order {
		o := s.Ranks[at.rank][at.slot]
		st := step{op: o, rank: at.rank, slot: at.slot, need: -1, make: m.product(o), to: -1}
		if o.Kind == U {
			updates = append(updates, st)
			continue
		}
		for _, need := range s.Needs(o, t.kindOf) {
			if s.Place[need.Stage] != int(at.rank) {
				st.need = m.product(need)
			}
		}
		if stage, ok := s.consumer(o); ok {
			st.to = int32(s.Place[stage])
			key := [2]int{int(st.rank), int(st.to)}
			if _, ok := links[key]; !ok {
				links[key] = int32(len(links))
			}
			st.link = links[key]
		}
		m.line = append(m.line, st)
	}
	m.line = append(m.line, updates...)
	m.links = make([]time.Duration, len(links))
}

// Run gives the timeline under costs c. The timeline is the simulator's own and is overwritten by the next Run.
func (m *Simulator) Run(c Costs) (*Timeline, error) {
	clear(m.free)
	clear(m.lane)
	clear(m.links)
	m.out.beside = c.Beside
	line := m.line
	if c.Blocking && c.Move != nil {
		if err := m.lower(); err != nil {
			return nil, err
		}
		line = m.lowered
	}
	run := run{Simulator: m, c: c, longest: time.Duration(math.MaxInt64 / int64(4*len(m.line)+4))}
	if err := run.walk(line); err != nil {
		return nil, err
	}
	m.out.Makespan = 0
	for r := range m.free {
		m.out.Makespan = max(m.out.Makespan, m.free[r], m.lane[r])
	}
	return &m.out, nil
}

// lower lays the line of a blocking run: that of Lower.
func (m *Simulator) lower() error {
	if m.lowered != nil {
		return nil
	}
	events, err := line(m.s)
	if err != nil {
		return err
	}
	slots := make([]int32, len(m.s.Ranks))
	var updates []step
	for _, e := range events {
		st := step{op: e.op, rank: int32(e.rank), need: -1, make: -1, to: int32(e.to), move: e.message}
		if !e.message {
			st.to = -1
			st.slot = slots[e.rank]
			slots[e.rank]++
		}
		if e.op.Kind == U {
			updates = append(updates, st)
			continue
		}
		m.lowered = append(m.lowered, st)
	}
	m.lowered = append(m.lowered, updates...)
	return nil
}
