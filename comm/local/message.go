package local

import (
	"context"
	"fmt"
	"slices"
	"time"

	"triax/comm"
	"triax/tensor"
)

// Send takes over t and hands it to the receiver's mailbox.
func (t *transport) Send(_ context.Context, to int, tag comm.Tag, x *tensor.Tensor) *comm.Pending {
	w := t.world
	if to < 0 || to >= w.size || to == t.rank {
		panic(fmt.Sprintf("local: rank %d sends to rank %d of %d", t.rank, to, w.size))
	}
	p, end := comm.NewPending()
	now := time.Now()
	m := message{t: x, sent: now, arrives: w.arrival(t.rank, to, tag, x.Bytes(), now)}
	if w.opts.copied {
		m.seal = seal(x)
	}
	if w.opts.rendezvous {
		m.taken = end
	} else {
		end(comm.Times{}, nil)
	}
	w.boxes[to].put(sender{t.rank, tag}, m)
	return p
}

// Recv takes a message, waits until it has arrived, and makes its memory this rank's.
func (t *transport) Recv(ctx context.Context, from int, tag comm.Tag, want comm.Spec) (*tensor.Tensor, comm.Times, error) {
	w := t.world
	if from < 0 || from >= w.size || from == t.rank {
		panic(fmt.Sprintf("local: rank %d receives from rank %d of %d", t.rank, from, w.size))
	}
	start := time.Now()
	m, err := w.boxes[t.rank].take(ctx, sender{from, tag})
	if err != nil {
		return nil, comm.Times{}, err
	}
	ready := time.Now()
	if m.taken != nil {
		m.taken(comm.Times{Wait: ready.Sub(m.sent)}, nil)
	}
	if err := sleep(ctx, m.arrives.Sub(ready)); err != nil {
		m.t.Release()
		return nil, comm.Times{}, err
	}
	x, err := t.own(m, want)
	if err != nil {
		return nil, comm.Times{}, fmt.Errorf("message %v from rank %d: %w", tag, from, err)
	}
	return x, comm.Times{Wait: ready.Sub(start), Move: time.Since(ready)}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		timer.Stop()
		return context.Cause(ctx)
	}
}

// own makes a message's memory this rank's, if it is what the rank wants.
func (t *transport) own(m message, want comm.Spec) (*tensor.Tensor, error) {
	if m.t.DType != want.DType || !slices.Equal(m.t.Shape, want.Shape) {
		err := fmt.Errorf("it is %v, want %v%v", m.t, want.DType, want.Shape)
		m.t.Release()
		return nil, err
	}
	if m.seal == nil {
		t.heap.Adopt(m.t, want.Kind)
		return m.t, nil
	}
	x := t.heap.New(want.Kind, want.DType, want.Shape...)
	if err := m.seal.open(x); err != nil {
		x.Release()
		return nil, err
	}
	return x, nil
}
