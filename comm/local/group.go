package local

import (
	"context"
	"fmt"
	"sync/atomic"
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

func newGroup(name string, ranks []int, spin int) *group {
	n := len(ranks)
	return &group{name: name, ranks: ranks, joined: make([]bool, n), meet: newMeeting(n, spin), calls: make([]call, n)}
}

// member is one rank's end of a group. It implements comm.Collective.
type member struct {
	group   *group
	place   int
	busy    atomic.Bool
	scratch scratch
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
	if !m.busy.CompareAndSwap(false, true) {
		panic(fmt.Sprintf("local: group %s: rank %d calls %s while a call of its own is under way", g.name, g.ranks[m.place], c.kind))
	}
	defer m.busy.Store(false)
	start := time.Now()
	g.calls[m.place] = c
	if err := g.meet.arrive(ctx, m.place); err != nil {
		return comm.Times{}, err
	}
	met := time.Now()
	err := g.verdict()
	if err == nil {
		m.work()
	}
	// Everyone is past the first meeting and works without waiting: this one ends soon, and until then the
	// others may be reading this rank's memory.
	if broken := g.meet.arrive(context.Background(), m.place); broken != nil { // cannot be given up
		panic(fmt.Sprintf("local: group %s: %v", g.name, broken))
	}
	g.calls[m.place] = call{}
	return comm.Times{Wait: met.Sub(start), Move: time.Since(met)}, err
}
