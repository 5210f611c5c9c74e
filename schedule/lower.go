package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Verb is what an action does.
type Verb uint8

const (
	Compute Verb = iota // run Op
	Send                // send Op's result to Peer
	Recv                // receive the result of Op, which Peer has run
)

// String is the verb in lower case.
func (v Verb) String() string { return [...]string{"compute", "send", "recv"}[v] }

// Action is one step of a rank when its transfers are explicit: an op, or one side of a message. A message is
// named by the op that made it: the result of 1F3 is the activation for stage 2, that of 2I3 or 2B3 the
// gradient for stage 1.
type Action struct {
	Verb Verb
	Op   Op
	Peer int // the other rank of a message; -1 for Compute
}

// String prints an action: "1F3", "send 1F3 to 2", "recv 2B3 from 2".
func (a Action) String() string {
	switch a.Verb {
	case Send:
		return fmt.Sprintf("send %v to %d", a.Op, a.Peer)
	case Recv:
		return fmt.Sprintf("recv %v from %d", a.Op, a.Peer)
	}
	return a.Op.String()
}

// consumer is the stage that takes o's result from another rank; ok is false when nobody does.
func (s *Schedule) consumer(o Op) (stage int, ok bool) {
	switch o.Kind {
	case F:
		stage = o.Stage + 1
	case I, B:
		stage = o.Stage - 1
	default:
		return 0, false
	}
	return stage, stage >= 0 && stage < s.Stages && s.Place[stage] != s.Place[o.Stage]
}

// event is an op or a message on one line of time.
type event struct {
	at       time.Duration
	message  bool
	rank, to int
	op       Op
}

// Lower makes the transfers of a schedule explicit, for transports on which a send blocks until the peer
// receives, as NCCL's and MPI's may, and where one message is under way per rank.
//
// All ops and messages are laid on one line, in the order of an unhindered run with F = I = W and B twice
// that: an op where it starts, a message where its op ends, messages first. Every rank's list is that line,
// less what does not concern it. No such lists can deadlock: of all that is left, the earliest entry on the
// line is at the head of every list that it stands in, so it can always run.
func Lower(s *Schedule) ([][]Action, error) {
	events, err := line(s)
	if err != nil {
		return nil, err
	}
	out := make([][]Action, len(s.Ranks))
	for _, e := range events {
		if !e.message {
			out[e.rank] = append(out[e.rank], Action{Compute, e.op, -1})
			continue
		}
		out[e.rank] = append(out[e.rank], Action{Send, e.op, e.to})
		out[e.to] = append(out[e.to], Action{Recv, e.op, e.rank})
	}
	return out, nil
}

// line is all ops and messages of a schedule in the order that Lower speaks of.
func line(s *Schedule) ([]event, error) {
	run, err := Simulate(s, Uniform(1, 1, 1))
	if err != nil {
		return nil, err
	}
	events := make([]event, 0, 2*len(s.Ranks)*len(s.Ranks[0]))
	for r, spans := range run.Ranks {
		for _, span := range spans {
			events = append(events, event{at: span.Start, rank: r, to: -1, op: span.Op})
			if stage, ok := s.consumer(span.Op); ok {
				events = append(events, event{at: span.End, message: true, rank: r, to: s.Place[stage], op: span.Op})
			}
		}
	}
	// Stable, so that ops without duration (R, U) keep their place in their rank's list.
	slices.SortStableFunc(events, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 || a.message == b.message {
			return c
		}
		if a.message {
			return -1
		}
		return 1
	})
	return events, nil
}

// ProgramOrder is the naive lowering: receive right before the op that needs it, send right after the op that
// made it. It is what ranks do whose sends never block; with blocking sends it deadlocks for any schedule
// where neighbours send to one another at once, and Rendezvous shows the ring.
func ProgramOrder(s *Schedule) ([][]Action, error) {
	t, err := index(s)
	if err != nil {
		return nil, err
	}
	out := make([][]Action, len(s.Ranks))
	for r, ops := range s.Ranks {
		for _, o := range ops {
			for _, need := range s.Needs(o, t.kindOf) {
				if from := s.Place[need.Stage]; from != r {
					out[r] = append(out[r], Action{Recv, need, from})
				}
			}
			out[r] = append(out[r], Action{Compute, o, -1})
			if stage, ok := s.consumer(o); ok {
				out[r] = append(out[r], Action{Send, o, s.Place[stage]})
			}
		}
	}
	return out, nil
}
