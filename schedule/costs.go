package schedule

import "time"

// Costs is what a run takes: the time of every op and of every transfer.
type Costs struct {
	// Time is how long an op takes. For R it is the reduction itself, for U the update.
	Time func(Op) time.Duration
	// Move is what sending the result of op o from one rank to another takes; nil means nothing.
	Move func(o Op, from, to int) Transfer
	// Blocking makes both ranks wait while a message is under way: transfers happen in the order of Lower, each
	// once both ranks have come to it. Otherwise messages leave when their op has ended, in that order on each
	// link and direction, and cost the ranks nothing.
	Blocking bool
	// Beside runs reductions beside compute, one after the other; U waits for the last one of its rank.
	Beside bool
	// Barrier lets no rank start U before all ranks have come to it, as a global gradient norm does.
	Barrier bool
}

// Transfer is the price of one message: it holds its link for Occupancy and arrives Latency later.
type Transfer struct {
	Latency   time.Duration
	Occupancy time.Duration
}

// Uniform is the costs of a pipeline whose stages are all equal: forward f, input gradient i, weight gradient w,
// whole backward i+w; reductions, updates and transfers take nothing.
func Uniform(f, i, w time.Duration) Costs {
	times := [NumKinds]time.Duration{F: f, I: i, W: w, B: i + w}
	return Costs{Time: func(o Op) time.Duration { return times[o.Kind] }}
}

// Span is one op on the clock, and why its rank was idle before it.
type Span struct {
	Op         Op
	Start, End time.Duration
	Peer       time.Duration // idle before Start until another rank had the op's input, or came to a meeting
	Transfer   time.Duration // idle before Start while a message, or a reduction beside compute, was under way
}

// Timeline is a schedule on the clock. Spans are in the order of the rank's list; with Costs.Beside those of R
// lie beside the others.
type Timeline struct {
	Ranks    [][]Span
	Makespan time.Duration // the end of the last op of any rank

	beside bool
}

// Idle is the time that a rank does not compute in, by cause; the four add up to Makespan less Busy.
type Idle struct {
	WarmUp   time.Duration // before its first op
	Peer     time.Duration // between two ops, until another rank had what the later one needs
	Transfer time.Duration // between two ops, while that was under way
	Drain    time.Duration // after its last op
}

// Total is the sum of all causes.
func (i Idle) Total() time.Duration { return i.WarmUp + i.Peer + i.Transfer + i.Drain }

// Busy is the time in which a rank runs ops; reductions beside compute do not count.
func (t *Timeline) Busy(rank int) time.Duration {
	var busy time.Duration
	for _, s := range t.Ranks[rank] {
		if !t.besides(s.Op) {
			busy += s.End - s.Start
		}
	}
	return busy
}

func (t *Timeline) besides(o Op) bool { return t.beside && o.Kind == R }

// Causes splits a rank's idle time by cause.
func (t *Timeline) Causes(rank int) Idle {
	var idle Idle
	var last time.Duration
	first := true
	for _, s := range t.Ranks[rank] {
		if t.besides(s.Op) {
			continue
		}
		if first {
			idle.WarmUp = s.Start
			first = false
		} else {
			idle.Peer += s.Peer
			idle.Transfer += s.Transfer
		}
		last = s.End
	}
	idle.Drain = t.Makespan - last
	return idle
}

// Bubble is the idle share of the whole step over all ranks: one less busy time over ranks times makespan.
func (t *Timeline) Bubble() float64 {
	if t.Makespan == 0 {
		return 0
	}
	var busy time.Duration
	for r := range t.Ranks {
		busy += t.Busy(r)
	}
	return 1 - float64(busy)/(float64(len(t.Ranks))*float64(t.Makespan))
}

// DeviceBubble is the idle share of one rank between the start of its first op and the end of its last. It is
// what "zero bubble" speaks of, and leaves out that ranks start and end at different times.
func (t *Timeline) DeviceBubble(rank int) float64 {
	idle := t.Causes(rank)
	span := t.Makespan - idle.WarmUp - idle.Drain
	if span == 0 {
		return 0
	}
	return float64(idle.Peer+idle.Transfer) / float64(span)
}
