package local

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"triax/comm"
	"triax/tensor"
)

// message is a tensor on its way.
type message struct {
	t       *tensor.Tensor
	sent    time.Time
	arrives time.Time
	taken   func(comm.Times, error) // ends the send
}

// sender names a line of messages: those never overtake one another.
type sender struct {
	from int
	tag  comm.Tag
}

// mailbox holds one rank's messages until it asks for them.
type mailbox struct {
	mu    sync.Mutex
	lines map[sender][]message
	wait  map[sender]chan struct{} // one slot, for a receiver that came first
	last  map[sender]time.Time     // when the latest message of a line arrives
}

func newMailbox() *mailbox {
	return &mailbox{lines: map[sender][]message{}, wait: map[sender]chan struct{}{}, last: map[sender]time.Time{}}
}

func (b *mailbox) put(s sender, m message, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held {
		if last := b.last[s]; m.arrives.Before(last) {
			m.arrives = last
		}
		b.last[s] = m.arrives
	}
	b.lines[s] = append(b.lines[s], m)
	if c := b.wait[s]; c != nil {
		delete(b.wait, s)
		c <- struct{}{}
	}
}

func (b *mailbox) take(ctx context.Context, s sender) (message, error) {
	for {
		b.mu.Lock()
		if line := b.lines[s]; len(line) > 0 {
			m := line[0]
			if len(line) == 1 {
				delete(b.lines, s)
			} else {
				line[0] = message{}
				b.lines[s] = line[1:]
			}
			b.mu.Unlock()
			return m, nil
		}
		if b.wait[s] != nil {
			b.mu.Unlock()
			return message{}, fmt.Errorf("two receives of %v from rank %d at a time", s.tag, s.from)
		}
		c := make(chan struct{}, 1)
		b.wait[s] = c
		b.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			b.mu.Lock()
			if b.wait[s] == c {
				delete(b.wait, s)
			}
			b.mu.Unlock()
			return message{}, context.Cause(ctx)
		}
	}
}

func (b *mailbox) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s, line := range b.lines {
		for _, m := range line {
			m.t.Release()
		}
		delete(b.lines, s)
	}
}

// Send takes over t and hands it to the receiver's mailbox.
func (t *transport) Send(_ context.Context, to int, tag comm.Tag, x *tensor.Tensor) *comm.Pending {
	w := t.world
	if to < 0 || to >= w.size || to == t.rank {
		panic(fmt.Sprintf("local: rank %d sends to rank %d of %d", t.rank, to, w.size))
	}
	p, end := comm.NewPending()
	now := time.Now()
	m := message{t: x, sent: now, arrives: w.arrival(t.rank, to, tag, x.Bytes(), now)}
	if w.opts.rendezvous {
		m.taken = end
	} else {
		end(comm.Times{}, nil)
	}
	w.boxes[to].put(sender{t.rank, tag}, m, w.opts.delay != nil || w.linked())
	return p
}

// Recv takes a message, waits until it has arrived, and makes its memory this rank's.
func (t *transport) Recv(ctx context.Context, from int, tag comm.Tag, want comm.Spec) (*tensor.Tensor, comm.Times, error) {
	start := time.Now()
	m, err := t.world.boxes[t.rank].take(ctx, sender{from, tag})
	if err != nil {
		return nil, comm.Times{}, err
	}
	ready := time.Now()
	if m.taken != nil {
		m.taken(comm.Times{Wait: ready.Sub(m.sent)}, nil)
	}
	if left := m.arrives.Sub(ready); left > 0 {
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			m.t.Release()
			return nil, comm.Times{}, context.Cause(ctx)
		}
	}
	if m.t.DType != want.DType || !slices.Equal(m.t.Shape, want.Shape) {
		got := m.t.String()
		m.t.Release()
		return nil, comm.Times{}, fmt.Errorf("message %+v from rank %d is %s, want %v%v", tag, from, got, want.DType, want.Shape)
	}
	x := t.own(m.t, want)
	return x, comm.Times{Wait: ready.Sub(start), Move: time.Since(ready)}, nil
}

// own makes a message's memory this rank's.
func (t *transport) own(x *tensor.Tensor, want comm.Spec) *tensor.Tensor {
	if !t.world.opts.copied {
		t.heap.Adopt(x, want.Kind)
		return x
	}
	y := t.heap.New(want.Kind, x.DType, x.Shape...)
	switch x.DType {
	case tensor.F64:
		copy(y.F64(), x.F64())
	case tensor.F32:
		copy(y.F32(), x.F32())
	case tensor.I32:
		copy(y.I32(), x.I32())
	default:
		copy(tensor.Slice[uint16](y), tensor.Slice[uint16](x))
	}
	x.Release()
	return y
}
