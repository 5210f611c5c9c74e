package nccl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"triax/comm"
	"triax/cuda/driver"
	"triax/cuda/nccl"
	"triax/tensor"
)

type transport struct{ *World }

// Partition cuts all ranks into groups and makes their communicators by one split, which shares what the world's has found out. All ranks call it with the
// same groups; those in none get none. Join with the name "AXIS [RANKS]" then takes this rank's.
func (w *World) Partition(ctx context.Context, axis string, groups [][]int) error {
	color, place, members := nccl.NoColor, 0, 0
	name := ""
	for i, g := range groups {
		if p := slices.Index(g, w.o.Rank); p >= 0 {
			color, place, members, name = i, p, len(g), fmt.Sprintf("%s %v", axis, g)
		}
	}
	return w.together(ctx, "partition "+axis, w.all(), []byte(fmt.Sprint(groups)), func(bodies [][]byte) error {
		for r, b := range bodies {
			if string(b) != string(bodies[0]) {
				return fmt.Errorf("partition %s: rank %d has groups %s, rank 0 %s", axis, r, b, bodies[0])
			}
		}
		if err := w.eng.ready(w.base.comm); err != nil {
			return err
		}
		c, err := w.base.comm.Split(color, place, members, place, w.o.MaxCTAs)
		if err != nil {
			return err
		}
		if c == nil {
			return w.eng.ready(w.base.comm)
		}
		w.parts[name], err = w.eng.open(c, nil)
		return err
	})
}

// Join makes a group's communicator, or takes the one that Partition made.
func (t *transport) Join(ctx context.Context, name string, ranks []int) (comm.Collective, error) {
	w := t.World
	place := slices.Index(ranks, w.o.Rank)
	if place < 0 {
		return nil, fmt.Errorf("rank %d is not among %v", w.o.Rank, ranks)
	}
	for i, r := range ranks {
		if r < 0 || r >= w.o.Size || slices.Contains(ranks[:i], r) {
			return nil, fmt.Errorf("ranks %v of %d are not all different and there", ranks, w.o.Size)
		}
	}
	g := &group{world: w, name: name, ranks: slices.Clone(ranks), place: place}
	var id nccl.ID
	if place == 0 {
		var err error
		if id, err = w.o.Library.UniqueID(); err != nil {
			return nil, err
		}
	}
	return g, w.together(ctx, "join "+name, g.ranks, id[:], func(bodies [][]byte) (err error) {
		if g.on = w.parts[name]; g.on != nil {
			delete(w.parts, name)
			return nil
		}
		if copy(id[:], bodies[0]) != len(id) {
			return errors.New("the group's name is cut off")
		}
		g.on, err = w.eng.open(w.o.Library.Init(id, len(g.ranks), place, w.o.MaxCTAs))
		return err
	})
}

// group is this rank's end of a group. It implements comm.Collective.
type group struct {
	world *World
	on    *channel
	name  string
	ranks []int
	place int
	calls int
	busy  atomic.Bool
}

func (g *group) AllReduce(ctx context.Context, t *tensor.Tensor, op comm.Op) (comm.Times, error) {
	return g.collective(ctx, comm.KindAllReduce, op, 0, t, t)
}

func (g *group) ReduceScatter(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.collective(ctx, comm.KindReduceScatter, comm.Sum, 0, dst, src)
}

func (g *group) AllGather(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.collective(ctx, comm.KindAllGather, comm.Sum, 0, dst, src)
}

func (g *group) Broadcast(ctx context.Context, t *tensor.Tensor, root int) (comm.Times, error) {
	return g.collective(ctx, comm.KindBroadcast, comm.Sum, root, t, t)
}

func (g *group) AllToAll(ctx context.Context, dst, src *tensor.Tensor) (comm.Times, error) {
	return g.collective(ctx, comm.KindAllToAll, comm.Sum, 0, dst, src)
}

func (g *group) Barrier(ctx context.Context) (comm.Times, error) {
	return g.collective(ctx, comm.KindBarrier, comm.Sum, 0, nil, nil)
}

// call is a collective under way.
type call struct {
	*group
	comm.Terms
	dst, src *tensor.Tensor
	ready    Mark
	met      time.Time
	done     chan error
}

func (w *World) owns(t *tensor.Tensor) bool {
	if t.Len() == 0 {
		return true
	}
	_, ok := w.o.Device.Address(t)
	return ok
}

func (g *group) collective(ctx context.Context, kind comm.CallKind, op comm.Op, root int, dst, src *tensor.Tensor) (comm.Times, error) {
	if !g.busy.CompareAndSwap(false, true) {
		panic(fmt.Sprintf("nccl: group %s: rank %d calls %s while a call of its own is under way", g.name, g.ranks[g.place], kind))
	}
	defer g.busy.Store(false)
	if ctx.Err() != nil {
		g.world.giveUp(context.Cause(ctx)) // the members are out of step
		return comm.Times{}, context.Cause(ctx)
	}
	start := time.Now()
	mark, err := g.world.o.Device.Mark()
	if err != nil {
		return comm.Times{}, err
	}
	c := &call{group: g, Terms: comm.TermsOf(kind, op, root, dst, src, g.world.owns), dst: dst, src: src, ready: mark, done: make(chan error, 1)}
	if err := c.begin(); err != nil {
		return comm.Times{}, err
	}
	select {
	case err := <-c.done:
		if c.met.IsZero() {
			return comm.Times{}, err
		}
		return comm.Times{Wait: c.met.Sub(start), Move: time.Since(c.met)}, err
	case <-ctx.Done():
		g.world.giveUp(context.Cause(ctx))
		return comm.Times{}, context.Cause(ctx)
	}
}

// begin comes to the meeting, or issues at once where all ranks call in one order.
func (c *call) begin() error {
	if c.InOrder() {
		if err := comm.Agree(c.name, c.ranks[c.place:c.place+1], c.alone()); err != nil {
			return err
		}
		c.hold()
		c.world.eng.do(func() {
			c.met = time.Now()
			c.move()
		})
		return nil
	}
	body, err := json.Marshal(c.Terms)
	if err != nil {
		return err
	}
	c.calls++
	c.hold()
	c.world.meet(fmt.Sprintf("%s #%d", c.name, c.calls), c.ranks, body, &meet{c.meeting, c.end})
	return nil
}

// InOrder says whether the members' calls are not compared.
func (g *group) InOrder() bool { return g.world.o.InOrder }

// alone is this member's terms as those of all: what is wrong with the call by itself shows.
func (c *call) alone() []comm.Terms {
	all := make([]comm.Terms, len(c.ranks))
	for i := range all {
		all[i] = c.Terms
	}
	return all
}

func (c *call) hold() {
	if c.dst != nil {
		c.dst.Retain()
		c.src.Retain()
	}
}

// end ends the call, and gives back what it held: nobody writes there any more.
func (c *call) end(err error) {
	if c.dst != nil {
		c.dst.Release()
		c.src.Release()
	}
	c.done <- err
}

// meeting compares what all members call, and begins; on the engine's thread.
func (c *call) meeting(bodies [][]byte) {
	c.met = time.Now()
	all := make([]comm.Terms, len(bodies))
	for i, b := range bodies {
		if err := json.Unmarshal(b, &all[i]); err != nil {
			c.end(fmt.Errorf("group %s: what rank %d calls: %w", c.name, c.ranks[i], err))
			return
		}
	}
	if err := comm.Agree(c.name, c.ranks, all); err != nil {
		c.end(err)
		return
	}
	if c.Kind == comm.KindBarrier { // they have met
		c.end(nil)
		return
	}
	c.move()
}

// move gives the collective to the device; on the engine's thread.
func (c *call) move() {
	ops, err := c.operations()
	if err != nil || len(ops) == 0 {
		c.end(err)
		return
	}
	c.world.eng.issue(c.on, []Mark{c.ready}, ops, c.end)
}

// operations are what a collective is for the library: none where nothing is moved.
func (c *call) operations() ([]nccl.Op, error) {
	if c.Kind == comm.KindBarrier {
		p := c.world.scratch.word
		return []nccl.Op{{Kind: nccl.AllReduce, Send: p, Recv: p, Count: 1, Type: nccl.Int32}}, nil
	}
	if max(c.Len, c.Result) == 0 {
		return nil, nil
	}
	src, okSrc := c.world.o.Device.Address(c.src)
	dst, okDst := c.world.o.Device.Address(c.dst)
	if !okSrc || !okDst {
		return nil, fmt.Errorf("group %s: %v or %v is not in the device's memory", c.name, c.src, c.dst)
	}
	o := nccl.Op{Send: src, Recv: dst, Count: uint64(c.Len), Type: typeOf(c.DType), Peer: c.Root}
	if c.Op == comm.Max {
		o.Reduction = nccl.Max
	}
	switch c.Kind {
	case comm.KindAllReduce:
		o.Kind = nccl.AllReduce
	case comm.KindReduceScatter:
		o.Kind, o.Count = nccl.ReduceScatter, uint64(c.Result)
	case comm.KindAllGather:
		o.Kind = nccl.AllGather
	case comm.KindBroadcast:
		o.Kind = nccl.Broadcast
	case comm.KindAllToAll:
		return exchange(o, len(c.ranks), c.DType.Size()), nil
	}
	return []nccl.Op{o}, nil
}

// exchange is a message to and from every member, all in one group.
func exchange(all nccl.Op, members, size int) (ops []nccl.Op) {
	n := all.Count / uint64(members)
	for p := range members {
		at := driver.Pointer(uint64(p) * n * uint64(size))
		ops = append(ops,
			nccl.Op{Kind: nccl.Send, Send: all.Send + at, Count: n, Type: all.Type, Peer: p},
			nccl.Op{Kind: nccl.Recv, Recv: all.Recv + at, Count: n, Type: all.Type, Peer: p})
	}
	return ops
}

func typeOf(d tensor.DType) nccl.Type {
	switch d {
	case tensor.F64:
		return nccl.Float64
	case tensor.BF16:
		return nccl.BFloat16
	case tensor.I32:
		return nccl.Int32
	}
	return nccl.Float32
}

// scratch is memory for calls without a tensor.
type scratch struct{ word driver.Pointer }

func newScratch(d Device) (s scratch, err error) {
	s.word, err = d.Scratch(4)
	return s, err
}
