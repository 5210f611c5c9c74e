package comm

import (
	"context"

	"triax/tensor"
)

// Recorded is t, with every call written to r as it begins and ends.
func Recorded(t Transport, r *Recorder) Transport { return &recorded{t, r} }

type recorded struct {
	Transport
	rec *Recorder
}

func (t *recorded) Join(ctx context.Context, name string, ranks []int) (Collective, error) {
	c, err := t.Transport.Join(ctx, name, ranks)
	if err != nil {
		return nil, err
	}
	return &recordedGroup{c, name, t.rec}, nil
}

// Send is recorded as an event: what comes after belongs to the Pending.
func (t *recorded) Send(ctx context.Context, to int, tag Tag, x *tensor.Tensor) *Pending {
	n := t.rec.start(flight{step: Step{Kind: KindSend, DType: x.DType, Len: x.Len()}, peer: to, tag: tag})
	p := t.Transport.Send(ctx, to, tag, x)
	t.rec.end(n, nil)
	return p
}

func (t *recorded) Recv(ctx context.Context, from int, tag Tag, want Spec) (*tensor.Tensor, Times, error) {
	n := t.rec.start(flight{step: Step{Kind: KindRecv, DType: want.DType, Len: tensor.Elements(want.Shape...)}, peer: from, tag: tag})
	x, times, err := t.Transport.Recv(ctx, from, tag, want)
	t.rec.end(n, err)
	return x, times, err
}

type recordedGroup struct {
	Collective
	name string
	rec  *Recorder
}

func (g *recordedGroup) call(s Step, f func() (Times, error)) (Times, error) {
	n := g.rec.start(flight{group: g.name, step: s})
	times, err := f()
	g.rec.end(n, err)
	return times, err
}

func (g *recordedGroup) AllReduce(ctx context.Context, t *tensor.Tensor, op Op) (Times, error) {
	return g.call(Step{Kind: KindAllReduce, DType: t.DType, Len: t.Len(), Op: op}, func() (Times, error) { return g.Collective.AllReduce(ctx, t, op) })
}

func (g *recordedGroup) ReduceScatter(ctx context.Context, dst, src *tensor.Tensor) (Times, error) {
	return g.call(Step{Kind: KindReduceScatter, DType: src.DType, Len: src.Len()}, func() (Times, error) { return g.Collective.ReduceScatter(ctx, dst, src) })
}

func (g *recordedGroup) AllGather(ctx context.Context, dst, src *tensor.Tensor) (Times, error) {
	return g.call(Step{Kind: KindAllGather, DType: src.DType, Len: src.Len()}, func() (Times, error) { return g.Collective.AllGather(ctx, dst, src) })
}

func (g *recordedGroup) Broadcast(ctx context.Context, t *tensor.Tensor, root int) (Times, error) {
	return g.call(Step{Kind: KindBroadcast, DType: t.DType, Len: t.Len(), Root: root}, func() (Times, error) { return g.Collective.Broadcast(ctx, t, root) })
}

func (g *recordedGroup) AllToAll(ctx context.Context, dst, src *tensor.Tensor) (Times, error) {
	return g.call(Step{Kind: KindAllToAll, DType: src.DType, Len: src.Len()}, func() (Times, error) { return g.Collective.AllToAll(ctx, dst, src) })
}

func (g *recordedGroup) Barrier(ctx context.Context) (Times, error) {
	return g.call(Step{Kind: KindBarrier}, func() (Times, error) { return g.Collective.Barrier(ctx) })
}
