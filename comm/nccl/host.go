package nccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"triax/comm"
	"triax/tensor"
)

// Host carries small messages of host memory, by way of the hub: what ranks say about a run, beside what their devices exchange. It makes no groups.
// Received messages become tensors of heap.
func (w *World) Host(heap *tensor.Heap) comm.Transport { return &hostWire{w, heap} }

type hostWire struct {
	*World
	heap *tensor.Heap
}

// hostMessage is one that has come: what it is, and its bytes.
type hostMessage struct {
	head head
	body []byte
}

// Join refuses.
func (t *hostWire) Join(context.Context, string, []int) (comm.Collective, error) {
	return nil, errors.New("nccl: collectives work on the devices' memory, not on the host's")
}

// Send copies x, and is done.
func (t *hostWire) Send(_ context.Context, to int, tag comm.Tag, x *tensor.Tensor) *comm.Pending {
	p, end := comm.NewPending()
	defer x.Release()
	body, err := bytesOf(x)
	if err == nil {
		h := head{Kind: tag.Kind, Stage: tag.Stage, Micro: tag.Micro, DType: x.DType, Shape: x.Shape}
		t.link.send(frame{Kind: kindData, To: to, Head: &h, Bodies: [][]byte{body}})
	}
	end(comm.Times{}, err)
	return p
}

// Recv waits for a message.
func (t *hostWire) Recv(ctx context.Context, from int, tag comm.Tag, want comm.Spec) (*tensor.Tensor, comm.Times, error) {
	start := time.Now()
	s := sender{from, tag}
	var m hostMessage
	if err := t.until(ctx, t.over, func() bool {
		line := t.data[s]
		if len(line) == 0 {
			return false
		}
		m, t.data[s] = line[0], line[1:]
		return true
	}); err != nil {
		return nil, comm.Times{}, err
	}
	met := time.Now()
	if m.head.DType != want.DType || !slices.Equal(m.head.Shape, want.Shape) || len(m.body) != tensor.Elements(want.Shape...)*want.DType.Size() {
		return nil, comm.Times{}, fmt.Errorf("message %v from rank %d: it is %v%v, want %v%v", tag, from, m.head.DType, m.head.Shape, want.DType, want.Shape)
	}
	x := t.heap.New(want.Kind, want.DType, want.Shape...)
	if err := setBytes(x, m.body); err != nil {
		x.Release()
		return nil, comm.Times{}, err
	}
	return x, comm.Times{Wait: met.Sub(start), Move: time.Since(met)}, nil
}

// deliver puts a message of host memory where Recv finds it.
func (w *World) deliver(f frame) {
	if f.Head == nil || len(f.Bodies) != 1 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := sender{f.From, f.Head.tag()}
	w.data[s] = append(w.data[s], hostMessage{*f.Head, f.Bodies[0]})
	w.notify()
}

// Agree returns rank 0's text on all ranks.
func (w *World) Agree(ctx context.Context, text string) (string, error) {
	tag := comm.Tag{Kind: agreed}
	if w.o.Rank == 0 {
		for r := 1; r < w.o.Size; r++ {
			w.link.send(frame{Kind: kindData, To: r, Head: &head{Kind: agreed}, Bodies: [][]byte{[]byte(text)}})
		}
		return text, nil
	}
	s := sender{0, tag}
	err := w.until(ctx, w.over, func() bool {
		line := w.data[s]
		if len(line) == 0 {
			return false
		}
		text, w.data[s] = string(line[0].body), line[1:]
		return true
	})
	return text, err
}

// agreed is a kind of message that no tag of the runs' has.
const agreed = 255
