package commtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"triax/comm"
	"triax/tensor"
)

func spec(shape ...int) comm.Spec {
	return comm.Spec{Kind: tensor.Activations, DType: tensor.F32, Shape: shape}
}

// send sends n numbers from first on.
func (r Rank) send(ctx context.Context, to int, tag comm.Tag, first float64, n int) *comm.Pending {
	return r.Wire.Send(ctx, to, tag, r.numbers(tensor.F32, n, func(i int) float64 { return first + float64(i) }))
}

// expect receives n numbers from first on.
func (r Rank) expect(ctx context.Context, from int, tag comm.Tag, first float64, n int) error {
	t, times, err := r.Wire.Recv(ctx, from, tag, spec(n))
	if err != nil {
		return err
	}
	defer t.Release()
	if times.Wait < 0 || times.Move < 0 {
		return fmt.Errorf("times %+v", times)
	}
	return r.equal(fmt.Sprintf("message %v from rank %d", tag, from), t, func(i int) float64 { return first + float64(i) })
}

// messages: every rank sends several messages of several tags to every other, all before it receives any; they are received tag
// by tag, in another order than sent, and within a tag in the order sent.
func messages(t *testing.T, open Open) {
	const size, tags, each = 3, 5, 4
	value := func(from, to, tag, k int) float64 { return float64(1000*from + 100*to + 10*tag + k) }
	for _, n := range []int{0, 1, 1000} {
		must(t, open(t, size), func(ctx context.Context, r Rank) error {
			me := r.Wire.Rank()
			var sent []*comm.Pending
			for k := range each {
				for tag := range tags {
					for to := range size {
						if to != me {
							sent = append(sent, r.send(ctx, to, comm.Tag{Kind: uint8(tag % 2), Micro: tag}, value(me, to, tag, k), n))
						}
					}
				}
			}
			for from := range size {
				for tag := tags - 1; tag >= 0 && from != me; tag-- {
					for k := range each {
						if err := r.expect(ctx, from, comm.Tag{Kind: uint8(tag % 2), Micro: tag}, value(from, me, tag, k), n); err != nil {
							return err
						}
					}
				}
			}
			return waitAll(ctx, sent)
		})
	}
}

func waitAll(ctx context.Context, sent []*comm.Pending) error {
	for _, p := range sent {
		if _, err := p.Wait(ctx); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// ownership: a sent tensor is the receiver's, in its heap, under the kind it asked for; the sender's heap is empty.
func ownership(t *testing.T, open Open) {
	must(t, open(t, 2), func(ctx context.Context, r Rank) error {
		me := r.Wire.Rank()
		m, err := all(ctx, r)
		if err != nil {
			return err
		}
		heap := r.Mem.Heap()
		before := heap.Usage(tensor.Activations).Now
		if me == 0 {
			if _, err := r.send(ctx, 1, comm.Tag{}, 5, 100).Wait(ctx); err != nil {
				return err
			}
		} else {
			t, _, err := r.Wire.Recv(ctx, 0, comm.Tag{}, spec(100))
			if err != nil {
				return err
			}
			if got := heap.Usage(tensor.Activations).Now - before; got != 400 {
				return fmt.Errorf("the receiver's heap grew by %d bytes of activations, want 400", got)
			}
			t.Release()
		}
		if _, err := m.Barrier(ctx); err != nil {
			return err
		}
		if got := heap.Usage(tensor.Buffers).Now + heap.Usage(tensor.Activations).Now - before; got != 0 {
			return fmt.Errorf("%d bytes are left", got)
		}
		return nil
	})
}

// crossedMessages: with two pipeline stages the next rank is also the one before. Forward and backward messages of other shapes, on
// their way at once between the same two ranks, must not be taken for one another.
func crossedMessages(t *testing.T, open Open) {
	const micros, forward, backward = 6, 30, 20
	must(t, open(t, 2), func(ctx context.Context, r Rank) error {
		me := r.Wire.Rank()
		peer := 1 - me
		var sent []*comm.Pending
		for micro := range micros {
			sent = append(sent,
				r.send(ctx, peer, comm.Tag{Kind: comm.TagForward, Stage: peer, Micro: micro}, float64(100*me+micro), forward),
				r.send(ctx, peer, comm.Tag{Kind: comm.TagBackward, Stage: peer, Micro: micro}, float64(-100*me-micro), backward))
		}
		for micro := range micros { // one rank asks for gradients first, the other for activations
			f := func() error {
				return r.expect(ctx, peer, comm.Tag{Kind: comm.TagForward, Stage: me, Micro: micro}, float64(100*peer+micro), forward)
			}
			b := func() error {
				return r.expect(ctx, peer, comm.Tag{Kind: comm.TagBackward, Stage: me, Micro: micro}, float64(-100*peer-micro), backward)
			}
			if me == 1 {
				f, b = b, f
			}
			if err := errors.Join(f(), b()); err != nil {
				return err
			}
		}
		return waitAll(ctx, sent)
	})
}

// largeMessages: both ranks send 20 MiB before they receive. A transport that sends at once only what fits its buffer would hang.
func largeMessages(t *testing.T, open Open) {
	const n = 20 << 20 / 4
	must(t, open(t, 2), func(ctx context.Context, r Rank) error {
		peer := 1 - r.Wire.Rank()
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i % 4099)
		}
		x := r.Mem.Heap().New(tensor.Buffers, r.Mem.Float(), n)
		r.Mem.Upload(x, values)
		sent := r.Wire.Send(ctx, peer, comm.Tag{}, x)
		want := spec(n)
		want.DType = r.Mem.Float()
		t, _, err := r.Wire.Recv(ctx, peer, comm.Tag{}, want)
		if err != nil {
			return err
		}
		defer t.Release()
		if !slices.Equal(r.values(t), values) {
			return fmt.Errorf("the message is not what was sent")
		}
		return waitAll(ctx, []*comm.Pending{sent})
	})
}

// wrongMessage: what was sent is not what is wanted. The error names both, and no memory is lost.
func wrongMessage(t *testing.T, open Open) {
	wrong := []comm.Spec{
		spec(5), spec(2, 6), {Kind: tensor.Activations, DType: tensor.F64, Shape: []int{12}},
	}
	ranks := open(t, 2)
	must(t, ranks, func(ctx context.Context, r Rank) error {
		m, err := all(ctx, r)
		if err != nil {
			return err
		}
		for _, want := range wrong {
			if r.Wire.Rank() == 0 {
				if _, err := r.send(ctx, 1, comm.Tag{Micro: 3}, 0, 12).Wait(ctx); err != nil {
					return err
				}
			} else if t, _, err := r.Wire.Recv(ctx, 0, comm.Tag{Micro: 3}, want); err == nil {
				return fmt.Errorf("wanted %v%v and got %v", want.DType, want.Shape, t)
			} else if s := err.Error(); !strings.Contains(s, "float32[12]") || !strings.Contains(s, fmt.Sprintf("%v%v", want.DType, want.Shape)) {
				return fmt.Errorf("the error does not name both tensors: %w", err)
			}
			if _, err := m.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	for i, r := range ranks {
		if now := r.Mem.Heap().Total().Now; now != 0 {
			t.Errorf("rank %d still holds %d bytes", i, now)
		}
	}
}
