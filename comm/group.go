package comm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"triax/tensor"
)

// Group is a set of ranks that communicate along an axis, seen from one of them. Groups of one rank
// do nothing and record nothing.
type Group struct {
	axis   string
	ranks  []int
	place  int
	engine Collective
	ledger *Ledger
}

// NewGroup joins a group. name must be the same on all members and unique in the run; axis is what the
// ledger books the calls under; ranks lists the members by place and holds the transport's own rank.
func NewGroup(ctx context.Context, t Transport, name, axis string, ranks []int, ledger *Ledger) (*Group, error) {
	place := slices.Index(ranks, t.Rank())
	if place < 0 {
		return nil, fmt.Errorf("group %s: rank %d is not among %v", name, t.Rank(), ranks)
	}
	g := &Group{axis: axis, ranks: slices.Clone(ranks), place: place, ledger: ledger}
	if len(ranks) > 1 {
		engine, err := t.Join(ctx, name, g.ranks)
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", name, err)
		}
		g.engine = engine
	}
	return g, nil
}

// Solo is the group of one rank.
func Solo(axis string, rank int) *Group { return &Group{axis: axis, ranks: []int{rank}} }

// Size is the number of members; Place this rank's position among them.
func (g *Group) Size() int    { return len(g.ranks) }
func (g *Group) Place() int   { return g.place }
func (g *Group) Ranks() []int { return slices.Clone(g.ranks) }

// String prints "tp [0 1]".
func (g *Group) String() string { return fmt.Sprintf("%s %v", g.axis, g.ranks) }

func (g *Group) call(kind CallKind, bytes int64, f func() (Times, error)) error {
	start := time.Now()
	times, err := f()
	if err != nil {
		return fmt.Errorf("%s of %d bytes on %v: %w", kind, bytes, g, err)
	}
	g.ledger.Add(Call{Axis: g.axis, Kind: kind, Bytes: bytes, Group: len(g.ranks), Start: start, Times: times})
	return nil
}

// AllReduce sums (or takes the maximum of) t over the group, in place.
func (g *Group) AllReduce(ctx context.Context, t *tensor.Tensor, op Op) error {
	if g.Size() == 1 {
		return nil
	}
	return g.call(KindAllReduce, t.Bytes(), func() (Times, error) { return g.engine.AllReduce(ctx, t, op) })
}

// ReduceScatter: src [g*n] → dst [n], this rank's part of the sum. With one rank it copies.
func (g *Group) ReduceScatter(ctx context.Context, dev tensor.Device, dst, src *tensor.Tensor) error {
	if src.Len() != dst.Len()*g.Size() {
		panic(fmt.Sprintf("comm: reduce-scatter %v → %v over %d ranks", src, dst, g.Size()))
	}
	if g.Size() == 1 {
		dev.Copy(dst, src)
		return nil
	}
	return g.call(KindReduceScatter, src.Bytes(), func() (Times, error) { return g.engine.ReduceScatter(ctx, dst, src) })
}

// AllGather: src [n] → dst [g*n]. src may be this rank's own part of dst. With one rank it copies.
func (g *Group) AllGather(ctx context.Context, dev tensor.Device, dst, src *tensor.Tensor) error {
	if dst.Len() != src.Len()*g.Size() {
		panic(fmt.Sprintf("comm: all-gather %v → %v over %d ranks", src, dst, g.Size()))
	}
	if g.Size() == 1 {
		dev.Copy(dst, src)
		return nil
	}
	return g.call(KindAllGather, dst.Bytes(), func() (Times, error) { return g.engine.AllGather(ctx, dst, src) })
}

// Broadcast copies t from the member at place root to all.
func (g *Group) Broadcast(ctx context.Context, t *tensor.Tensor, root int) error {
	if g.Size() == 1 {
		return nil
	}
	return g.call(KindBroadcast, t.Bytes(), func() (Times, error) { return g.engine.Broadcast(ctx, t, root) })
}

// AllToAll sends part i of src to the member at place i; dst gets the parts in order of places. With one rank it copies.
func (g *Group) AllToAll(ctx context.Context, dev tensor.Device, dst, src *tensor.Tensor) error {
	if src.Len() != dst.Len() || src.Len()%g.Size() != 0 {
		panic(fmt.Sprintf("comm: all-to-all %v → %v over %d ranks", src, dst, g.Size()))
	}
	if g.Size() == 1 {
		dev.Copy(dst, src)
		return nil
	}
	return g.call(KindAllToAll, src.Bytes(), func() (Times, error) { return g.engine.AllToAll(ctx, dst, src) })
}

// Barrier waits for all members.
func (g *Group) Barrier(ctx context.Context) error {
	if g.Size() == 1 {
		return nil
	}
	return g.call(KindBarrier, 0, func() (Times, error) { return g.engine.Barrier(ctx) })
}
