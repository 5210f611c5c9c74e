package cp

import (
	"fmt"
	"time"

	"triax/comm"
	"triax/nn"
	"triax/tensor"
)

// ring is attention over the ranks of a context group. Its tensors hold the rank's two stretches one after the other.
type ring struct {
	c, place   int
	next, prev int // world ranks
	wire       comm.Transport
	ledger     *comm.Ledger
	sends      []*comm.Pending // of the call under way
}

var _ nn.Core = (*ring)(nil)

// pair is one block of work: queries of one of this rank's stretches against keys of one of the visitor's.
type pair struct {
	q, k int // which stretch of each: 0 or 1
	at   tensor.Attention
}

// pairs lists the blocks in which this rank's queries see the keys of the rank at a place.
func (r *ring) pairs(from int, at tensor.Attention) (out []pair) {
	mine, theirs := Stretches(r.place, r.c), Stretches(from, r.c)
	n := at.Seq / 2
	for q, i := range mine {
		for k, j := range theirs {
			if i < j {
				continue // keys to come
			}
			b := at
			b.Seq, b.SeqTotal, b.QueryOffset, b.KeyOffset, b.Full = n, n*2*r.c, i*n, j*n, i > j
			if at.Segments != nil { // of all stretches
				t := at.Samples * n
				b.Segments, b.KeySegments = at.Segments.Flat(i*t, (i+1)*t), at.Segments.Flat(j*t, (j+1)*t)
			}
			out = append(out, pair{q, k, b})
		}
	}
	return out
}

// half is one stretch of a tensor whose flat memory is two of them.
func half(t *tensor.Tensor, i int) *tensor.Tensor {
	n := t.Len() / 2
	return t.Flat(i*n, (i+1)*n)
}

// Forward: o and lse over all keys up to each query, wherever they are.
func (r *ring) Forward(ctx *nn.Ctx, o, lse, q, k, v *tensor.Tensor, at tensor.Attention) error {
	dev := ctx.Dev
	po, pl := dev.New(tensor.Workspace, o.Len()/2), tensor.NewAccum(dev, tensor.Workspace, lse.Len()/2)
	defer po.Release()
	defer pl.Release()
	var fresh [2]bool // stretches of o that hold a result
	err := r.round(ctx, k, v, func(from int, k, v *tensor.Tensor) error {
		for _, p := range r.pairs(from, at) {
			oh, lh := half(o, p.q), half(lse, p.q)
			if !fresh[p.q] {
				fresh[p.q] = true
				dev.Attention(oh, lh, half(q, p.q), half(k, p.k), half(v, p.k), p.at)
				continue
			}
			dev.Attention(po, pl, half(q, p.q), half(k, p.k), half(v, p.k), p.at)
			dev.AttentionMerge(oh, lh, po, pl, p.at)
		}
		return nil
	})
	return r.flush(ctx, err)
}

// Backward: every block's share of the gradients, with o and lse of the whole rows. Gradients of keys and values
// travel with them and come home after a whole round.
func (r *ring) Backward(ctx *nn.Ctx, dq, dk, dv, do, o, lse, q, k, v *tensor.Tensor, at tensor.Attention) error {
	dev := ctx.Dev
	dev.Zero(dq)
	shape := []int{2, dk.Len()}
	first := dev.New(tensor.Buffers, shape...)
	dev.Zero(first)
	a, b := dev.New(tensor.Workspace, q.Len()/2), dev.New(tensor.Workspace, 2, k.Len()/2)
	defer a.Release()
	defer b.Release()
	err := r.round(ctx, k, v, func(from int, k, v *tensor.Tensor) error {
		sum := first // gradients of the visitor's keys and values so far
		if from != r.place {
			var err error
			if sum, err = r.recv(ctx, comm.TagRingGrad, shape); err != nil {
				return err
			}
		}
		sk, sv := sum.Rows(0, 1), sum.Rows(1, 2)
		for _, p := range r.pairs(from, at) {
			dev.AttentionGrad(a, half(b, 0), half(b, 1), half(do, p.q), half(o, p.q), half(lse, p.q),
				half(q, p.q), half(k, p.k), half(v, p.k), p.at)
			dev.Add(half(dq, p.q), a)
			dev.Add(half(sk, p.k), half(b, 0))
			dev.Add(half(sv, p.k), half(b, 1))
		}
		r.send(ctx, comm.TagRingGrad, sum)
		return nil
	})
	if err != nil {
		return err
	}
	home, err := r.recv(ctx, comm.TagRingGrad, shape)
	if err != nil {
		return err
	}
	dev.Copy(dk, home.Rows(0, 1))
	dev.Copy(dv, home.Rows(1, 2))
	home.Release()
	return r.flush(ctx, nil)
}

// round passes keys and values round the ring and calls f with those of every rank, this one's first. The next pair is on
// its way while f works.
func (r *ring) round(ctx *nn.Ctx, k, v *tensor.Tensor, f func(from int, k, v *tensor.Tensor) error) error {
	shape := []int{2, k.Len()}
	kv := ctx.Dev.New(tensor.Buffers, shape...)
	ctx.Dev.Copy(kv.Rows(0, 1), k)
	ctx.Dev.Copy(kv.Rows(1, 2), v)
	defer func() { kv.Release() }()
	for i := range r.c {
		if i < r.c-1 {
			onward := ctx.Dev.New(tensor.Buffers, shape...)
			ctx.Dev.Copy(onward, kv)
			r.send(ctx, comm.TagRing, onward)
		}
		if err := f((r.place+r.c-i)%r.c, kv.Rows(0, 1), kv.Rows(1, 2)); err != nil {
			return err
		}
		if i < r.c-1 {
			next, err := r.recv(ctx, comm.TagRing, shape)
			if err != nil {
				return err
			}
			kv.Release()
			kv = next
		}
	}
	return nil
}

// send hands t to the next rank, and waits for nothing.
func (r *ring) send(ctx *nn.Ctx, kind uint8, t *tensor.Tensor) {
	r.ledger.Add(comm.Call{Axis: "cp", Kind: comm.KindSend, Bytes: t.Bytes(), Group: 2, Start: time.Now()})
	r.sends = append(r.sends, r.wire.Send(ctx, r.next, comm.Tag{Kind: kind}, t))
}

// flush waits until the transport is done with everything sent.
func (r *ring) flush(ctx *nn.Ctx, err error) error {
	for _, p := range r.sends {
		if err != nil {
			break
		}
		if _, e := p.Wait(ctx); e != nil {
			err = fmt.Errorf("ring: send to rank %d: %w", r.next, e)
		}
	}
	r.sends = r.sends[:0]
	return err
}

func (r *ring) recv(ctx *nn.Ctx, kind uint8, shape []int) (*tensor.Tensor, error) {
	start := time.Now()
	t, times, err := r.wire.Recv(ctx, r.prev, comm.Tag{Kind: kind}, comm.Spec{Kind: tensor.Buffers, DType: ctx.Dev.Float(), Shape: shape})
	if err != nil {
		return nil, fmt.Errorf("ring: recv from rank %d: %w", r.prev, err)
	}
	r.ledger.Add(comm.Call{Axis: "cp", Kind: comm.KindRecv, Bytes: t.Bytes(), Group: 2, Start: start, Times: times})
	return t, nil
}
