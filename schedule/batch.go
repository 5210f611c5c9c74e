package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Batch is what a rank gives its device at once: one op, or messages that go on together, as NCCL's groups do. A batch of messages is through
// when all of them are.
type Batch []Action

// String prints "1F3", or "[send 1F3 to 2, recv 2B0 from 2]".
func (b Batch) String() string {
	if b.computes() {
		return b[0].Op.String()
	}
	words := make([]string, len(b))
	for i, a := range b {
		words[i] = a.String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func (b Batch) computes() bool { return len(b) == 1 && b[0].Verb == Compute }

// Lane is which of two communicators a message takes: 0 for activations, 1 for gradients, so that in a ring of stages, or between two ranks that are
// each other's next and last, neither is taken for the other.
func (o Op) Lane() int {
	if o.Kind == F {
		return 0
	}
	return 1
}

// Batches is Lower's lists, with messages between two ops of a rank in one batch: what is sent forward and what comes back are on their way
// together.
//
// They cannot deadlock, even on devices that do one batch at a time. Take the earliest entry of Lower's line that is left. All that stands
// before it on any rank's list is done, so both ranks of a message, or the one of an op, have come to the batch that holds it; a batch begins no earlier on
// the line than its first message, and what its other messages need comes before that too. The messages of a batch go on independently, so the entry can
// run, whatever else its batch waits for.
func Batches(s *Schedule) ([][]Batch, error) {
	actions, err := Lower(s)
	if err != nil {
		return nil, err
	}
	out := make([][]Batch, len(actions))
	for r, list := range actions {
		open := false // the last batch is of messages
		for _, a := range list {
			if last := len(out[r]) - 1; open && a.Verb != Compute {
				out[r][last] = append(out[r][last], a)
			} else {
				out[r] = append(out[r], Batch{a})
			}
			open = a.Verb != Compute
		}
	}
	return out, nil
}

// Together proves that batches come to their end on devices that do one at a time. batches are those of any number of pipelines, one after another, that run
// the schedule side by side and meet in collectives: rank r is pipeline rank r mod p, and at(r, o) is the collectives that it makes in op o, as in Meet; peers
// are pipeline ranks. It shows that a message goes when both of its ranks have come to it: every op of the schedule once and in order, every message sent after the op that makes
// it and received before the op that needs it, once; messages between two ranks on one lane, which have no names there, in one order on both; no
// ranks that wait for one another. The error names the ranks and where each of them stands.
//
// A device that does more at a time, or begins an op before a batch that it does not need, has only fewer reasons to wait.
func Together(s *Schedule, batches [][]Batch, at func(rank int, o Op) []Meeting) error {
	d, err := newDevices(s, batches, at)
	if err != nil {
		return err
	}
	for moved := true; moved; {
		moved = false
		for r := range batches {
			for {
				ok, err := d.step(r)
				if err != nil {
					return fmt.Errorf("rank %d, batch %d, %v: %w", r, d.pos[r], d.batches[r][d.pos[r]], err)
				}
				if !ok {
					break
				}
				moved = true
			}
		}
	}
	return d.ended()
}

// route is a line of messages without names.
type route struct{ from, to, lane int }

// devices is how far each rank's device has come.
type devices struct {
	s       *Schedule
	kindOf  func(stage, micro int) Kind
	batches [][]Batch
	at      func(rank int, o Op) []Meeting
	pos     []int
	begun   []bool // the batch at pos has been begun
	left    []int  // messages of it that are not through
	due     [][]Meeting
	ops     []int            // ops done
	has     []map[Op]bool    // results that a rank has made or received
	sent    []map[Op]bool    // results that it has sent
	sends   map[route][]post // on their way, in order
	recvs   map[route][]post
}

// post is one side of a message that a device has come to.
type post struct {
	rank int
	op   Op
}

func newDevices(s *Schedule, batches [][]Batch, at func(rank int, o Op) []Meeting) (*devices, error) {
	t, err := index(s)
	if err != nil {
		return nil, err
	}
	if len(batches) == 0 || len(batches)%len(s.Ranks) != 0 {
		return nil, fmt.Errorf("batches of %d ranks, the schedule has %d: not whole pipelines", len(batches), len(s.Ranks))
	}
	n := len(batches)
	d := &devices{
		s: s, kindOf: t.kindOf, batches: batches, at: at, pos: make([]int, n), begun: make([]bool, n), left: make([]int, n), due: make([][]Meeting, n),
		ops: make([]int, n), has: make([]map[Op]bool, n), sent: make([]map[Op]bool, n), sends: map[route][]post{}, recvs: map[route][]post{},
	}
	for r := range batches {
		d.has[r], d.sent[r] = map[Op]bool{}, map[Op]bool{}
	}
	return d, nil
}

// pipeline is a rank's place on its own line.
func (d *devices) pipeline(r int) int { return r % len(d.s.Ranks) }

// step moves rank r by a batch, or begins one; ok is false where it has to wait or has ended.
func (d *devices) step(r int) (ok bool, err error) {
	if d.pos[r] == len(d.batches[r]) {
		return false, nil
	}
	b := d.batches[r][d.pos[r]]
	if !d.begun[r] {
		d.begun[r] = true
		if b.computes() {
			return true, d.compute(r, b[0].Op)
		}
		return true, d.post(r, b)
	}
	if len(d.due[r]) > 0 {
		return d.gather(d.due[r][0])
	}
	if d.left[r] > 0 {
		return false, nil
	}
	d.pos[r]++
	d.begun[r] = false
	return true, nil
}

// compute checks an op's turn and inputs, and comes to its first collective.
func (d *devices) compute(r int, o Op) error {
	if list := d.s.Ranks[d.pipeline(r)]; d.ops[r] == len(list) || list[d.ops[r]] != o {
		return fmt.Errorf("not the schedule's op number %d", d.ops[r])
	}
	d.ops[r]++
	for _, need := range d.s.Needs(o, d.kindOf) {
		if !d.has[r][need] {
			return fmt.Errorf("%v has not come", need)
		}
	}
	d.has[r][o] = true
	d.due[r] = slices.Clone(d.at(r, o))
	for _, m := range d.due[r] {
		if !slices.Contains(m.Ranks, r) || slices.ContainsFunc(m.Ranks, func(x int) bool { return x < 0 || x >= len(d.batches) }) {
			return fmt.Errorf("%v is not among ranks 0 to %d with it as a member", m, len(d.batches)-1)
		}
	}
	return nil
}

// post makes a batch's messages known, and lets those go whose other side is there.
func (d *devices) post(r int, b Batch) error {
	for _, a := range b {
		me := d.pipeline(r)
		if a.Verb == Compute || a.Peer < 0 || a.Peer >= len(d.s.Ranks) || a.Peer == me || a.Op.Stage < 0 || a.Op.Stage >= d.s.Stages {
			return fmt.Errorf("%v: no such message", a)
		}
		stage, ok := d.s.consumer(a.Op)
		from, to := me, a.Peer
		if a.Verb == Recv {
			from, to = to, from
		}
		if !ok || d.s.Place[a.Op.Stage] != from || d.s.Place[stage] != to {
			return fmt.Errorf("%v: the result is not rank %d's for rank %d", a, from, to)
		}
		if a.Verb == Send {
			if !d.has[r][a.Op] || d.sent[r][a.Op] {
				return fmt.Errorf("%v: not made yet, or sent already", a)
			}
			d.sent[r][a.Op] = true
		} else if d.has[r][a.Op] {
			return fmt.Errorf("%v: it is there already", a)
		}
		d.left[r]++
		at := route{r - me + from, r - me + to, a.Op.Lane()}
		if a.Verb == Send {
			d.sends[at] = append(d.sends[at], post{r, a.Op})
		} else {
			d.recvs[at] = append(d.recvs[at], post{r, a.Op})
		}
		if err := d.match(at); err != nil {
			return err
		}
	}
	return nil
}

// match lets messages go as the library pairs them: the first send with the first receive.
func (d *devices) match(at route) error {
	for len(d.sends[at]) > 0 && len(d.recvs[at]) > 0 {
		s, r := d.sends[at][0], d.recvs[at][0]
		if s.op != r.op {
			return fmt.Errorf("messages cross: rank %d sends %v and rank %d receives %v", s.rank, s.op, r.rank, r.op)
		}
		d.sends[at], d.recvs[at] = d.sends[at][1:], d.recvs[at][1:]
		d.has[r.rank][r.op] = true
		d.left[s.rank]--
		d.left[r.rank]--
	}
	return nil
}

// gather lets a collective happen if it is what all its members have come to.
func (d *devices) gather(m Meeting) (bool, error) {
	for _, r := range m.Ranks {
		if len(d.due[r]) == 0 || d.due[r][0].Name != m.Name {
			return false, nil
		}
		if other := d.due[r][0]; !slices.Equal(other.Ranks, m.Ranks) {
			return false, fmt.Errorf("%v and %v: rank %d sees other members", m, other, r)
		}
	}
	for _, r := range m.Ranks {
		d.due[r] = d.due[r][1:]
	}
	return true, nil
}

// ended names where every rank stands that has not come to its end, and what is missing from those that have.
func (d *devices) ended() error {
	var waits []string
	for r, list := range d.batches {
		switch {
		case d.pos[r] < len(list) && len(d.due[r]) > 0:
			waits = append(waits, fmt.Sprintf("rank %d in %v waits for %v", r, list[d.pos[r]], d.due[r][0]))
		case d.pos[r] < len(list):
			waits = append(waits, fmt.Sprintf("rank %d waits in %v", r, list[d.pos[r]]))
		case d.ops[r] < len(d.s.Ranks[d.pipeline(r)]):
			waits = append(waits, fmt.Sprintf("rank %d has no batch for %v", r, d.s.Ranks[d.pipeline(r)][d.ops[r]]))
		}
	}
	if len(waits) > 0 {
		return fmt.Errorf("deadlock on devices: %s", strings.Join(waits, "; "))
	}
	return nil
}
