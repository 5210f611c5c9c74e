package local

import (
	"context"
	"fmt"
	"time"

	"triax/comm"
	"triax/tensor"
)

// group is what the members of a group share.
type group struct {
	name   string
	ranks  []int
	joined []bool
	meet   *meeting
	calls  []call // by place: what each member shows the others
}

// call is one member's side of a collective.
type call struct {
	kind     comm.CallKind
	op       comm.Op
	root     int
	dst, src *tensor.Tensor
}

func newGroup(name string, ranks []int, spin int) *group {
	n := len(ranks)
	return &group{name: name, ranks: ranks, joined: make([]bool, n), meet: newMeeting(n, spin), calls: make([]call, n)}
}

// member is one rank's end of a group. It implements comm.Collective.
type member struct {
	group *group
	place int
}

func (m *member) AllReduce(ctx context.Context, t *tensor.Tensor, op comm.Op) (comm.Times, error) {
	return m.collective(ctx, call{kind: comm.KindAllReduce, op: op, dst: t, src: t})
}

func (m *member) ReduceScatter(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return m.collective(ctx, call{kind: comm.KindReduceScatter, dst: dst, src: src})
}

func (m *member) AllGather(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return m.collective(ctx, call{kind: comm.KindAllGather, dst: dst, src: src})
}

func (m *member) Broadcast(ctx context.Context, t *tensor.Tensor, root int) (comm.Times, error) {
	return m.collective(ctx, call{kind: comm.KindBroadcast, root: root, dst: t, src: t})
}

func (m *member) AllToAll(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return m.collective(ctx, call{kind: comm.KindAllToAll, dst: dst, src: src})
}

func (m *member) Barrier(ctx context.Context) (comm.Times, error) {
	return m.collective(ctx, call{kind: comm.KindBarrier})
}

// collective shows the call, meets, works, and meets again.
func (m *member) collective(ctx context.Context, c call) (comm.Times, error) {
	g := m.group
	start := time.Now()
	g.calls[m.place] = c
	if err := g.meet.arrive(ctx, m.place); err != nil {
		return comm.Times{}, err
	}
	met := time.Now()
	err := g.mismatch()
	if err == nil {
		g.work(m.place)
	}
	// Everyone is past the first meeting and works without waiting: this one ends soon, and until then the
	// others may be reading this rank's memory.
	if broken := g.meet.arrive(nil, m.place); broken != nil { //nolint:staticcheck // nil: it cannot be given up
		panic(fmt.Sprintf("local: group %s: %v", g.name, broken))
	}
	g.calls[m.place] = call{}
	return comm.Times{Wait: met.Sub(start), Move: time.Since(met)}, err
}

// mismatch compares the calls; all members come to the same verdict.
func (g *group) mismatch() error {
	first := &g.calls[0]
	for i := 1; i < len(g.calls); i++ {
		if c := &g.calls[i]; !c.like(first) {
			return fmt.Errorf("group %s: the members call different things: rank %d %v, rank %d %v", g.name, g.ranks[0], first, g.ranks[i], c)
		}
	}
	return nil
}

func (c *call) like(d *call) bool {
	if c.kind != d.kind || c.op != d.op || c.root != d.root || (c.src == nil) != (d.src == nil) {
		return false
	}
	return c.src == nil || (c.src.Len() == d.src.Len() && c.src.DType == d.src.DType && c.dst.DType == c.src.DType)
}

func (c *call) String() string {
	s := string(c.kind)
	if c.op == comm.Max {
		s += " of the maximum"
	}
	if c.src != nil {
		s += fmt.Sprintf(" of %d %v", c.src.Len(), c.src.DType)
	}
	if c.kind == comm.KindBroadcast {
		s += fmt.Sprintf(" from place %d", c.root)
	}
	return s
}
