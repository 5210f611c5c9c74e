package nccl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"triax/comm"
	"triax/cuda/nccl"
	"triax/tensor"
)

// sender names a line of messages: those never overtake one another.
type sender struct {
	from int
	tag  comm.Tag
}

// arrived is a message that is here or on its way; done is closed when it is here.
type arrived struct {
	x    *tensor.Tensor
	err  *error
	done chan struct{}
}

// outgoing is a message that has not left.
type outgoing struct {
	x      *tensor.Tensor
	ready  Mark
	finish func(error)
}

// lane is the communicator of a kind of message: what goes forward and what goes backward may pass each other.
func (w *World) lane(kind uint8) *channel { return w.lanes[kind%2] }

// Send takes over x. Its memory is given back when the device has sent it. The hub hears of the message when the work that makes it is done, so
// that what is on the line never waits for a device's computation.
func (t *transport) Send(_ context.Context, to int, tag comm.Tag, x *tensor.Tensor) *comm.Pending {
	w := t.World
	if to < 0 || to >= w.o.Size || to == w.o.Rank {
		panic(fmt.Sprintf("nccl: rank %d sends to rank %d of %d", w.o.Rank, to, w.o.Size))
	}
	p, end := comm.NewPending()
	start := time.Now()
	finish := func(err error) {
		x.Release()
		end(comm.Times{Move: time.Since(start)}, err)
	}
	mark, err := w.o.Device.Mark()
	if err == nil && !w.owns(x) {
		err = fmt.Errorf("%v is not in the device's memory", x)
	}
	if err != nil {
		finish(err)
		return p
	}
	w.eng.do(func() {
		if w.eng.dead != nil {
			finish(w.eng.dead)
			return
		}
		w.sent++
		h := head{ID: w.sent, Kind: tag.Kind, Stage: tag.Stage, Micro: tag.Micro, DType: x.DType, Shape: x.Shape}
		w.outbox[h.ID] = &outgoing{x, mark, finish}
		w.announce(frame{Kind: kindMessage, To: to, Head: &h}, mark)
	})
	return p
}

// announce tells the hub of a message once it has been made. Messages are announced in the order of Send: marks are reached in order.
func (w *World) announce(f frame, made Mark) {
	tell := func(err error) {
		if err != nil && w.eng.dead == nil {
			w.eng.abort(err)
		}
		w.link.send(f)
	}
	if ok, err := made.Reached(); len(w.eng.waits) == 0 && (ok || err != nil) {
		tell(err)
		return
	}
	w.eng.waits = append(w.eng.waits, &waiting{made, tell})
}

// start issues this rank's side of a message that is next on the line; on the engine's thread.
func (w *World) start(f frame) {
	if w.eng.dead != nil {
		return
	}
	if f.From == w.o.Rank {
		m := w.outbox[f.Head.ID]
		delete(w.outbox, f.Head.ID)
		if m.x.Len() == 0 {
			m.finish(nil)
			return
		}
		p, _ := w.o.Device.Address(m.x) // Send has seen that it is there
		w.eng.issue(w.lane(f.Head.Kind), []Mark{m.ready}, []nccl.Op{{Kind: nccl.Send, Send: p, Count: uint64(m.x.Len()), Type: typeOf(m.x.DType), Peer: f.To}}, m.finish)
		return
	}
	w.receive(f)
}

// receive makes room for a message, and has it brought there.
func (w *World) receive(f frame) {
	a := arrived{x: w.heap.New(tensor.Buffers, f.Head.DType, f.Head.Shape...), err: new(error), done: make(chan struct{})}
	s := sender{f.From, f.Head.tag()}
	w.mu.Lock()
	w.lines[s] = append(w.lines[s], a)
	w.notify()
	w.mu.Unlock()
	end := func(err error) {
		*a.err = err
		close(a.done)
	}
	if a.x.Len() == 0 {
		end(nil)
		return
	}
	p, ok := w.o.Device.Address(a.x)
	mark, err := w.o.Device.Mark() // whoever had this memory before may not be through with it
	if !ok && err == nil {
		err = fmt.Errorf("%v: the heap's memory is not the device's", a.x)
	}
	if err != nil {
		w.eng.abort(err)
		end(err)
		return
	}
	w.eng.issue(w.lane(f.Head.Kind), []Mark{mark}, []nccl.Op{{Kind: nccl.Recv, Recv: p, Count: uint64(a.x.Len()), Type: typeOf(a.x.DType), Peer: f.From}}, end)
}

// Recv waits for a message.
func (t *transport) Recv(ctx context.Context, from int, tag comm.Tag, want comm.Spec) (*tensor.Tensor, comm.Times, error) {
	w := t.World
	if from < 0 || from >= w.o.Size || from == w.o.Rank {
		panic(fmt.Sprintf("nccl: rank %d receives from rank %d of %d", w.o.Rank, from, w.o.Size))
	}
	start := time.Now()
	s := sender{from, tag}
	var a arrived
	if err := w.until(ctx, w.over, func() bool {
		line := w.lines[s]
		if len(line) == 0 {
			return false
		}
		if a = line[0]; len(line) == 1 {
			delete(w.lines, s)
		} else {
			w.lines[s] = line[1:]
		}
		return true
	}); err != nil {
		w.giveUp(err)
		return nil, comm.Times{}, err
	}
	met := time.Now()
	select {
	case <-a.done:
	case <-ctx.Done():
		w.giveUp(context.Cause(ctx)) // the device may still write there: the memory stays taken
		return nil, comm.Times{}, context.Cause(ctx)
	}
	if *a.err != nil {
		return nil, comm.Times{}, *a.err
	}
	if a.x.DType != want.DType || !slices.Equal(a.x.Shape, want.Shape) {
		defer a.x.Release()
		return nil, comm.Times{}, fmt.Errorf("message %v from rank %d: it is %v, want %v%v", tag, from, a.x, want.DType, want.Shape)
	}
	w.heap.Adopt(a.x, want.Kind)
	return a.x, comm.Times{Wait: met.Sub(start), Move: time.Since(met)}, nil
}
