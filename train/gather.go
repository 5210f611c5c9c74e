package train

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"triax/comm"
	"triax/pp"
	"triax/tensor"
)

// share is what one process tells rank 0 of its measurements when a run is over.
type share struct {
	Steps    []shareSpan
	Comm     []comm.Entry
	Memory   Memory
	Params   int64
	Ops      []pp.Timing
	Calls    []comm.Call
	Saves    []Save
	Resident int64
}

type shareSpan struct {
	Start, End             time.Time
	Took, Busy, Idle, Move time.Duration
}

// tagRecords is the kind of the messages of measurements.
const tagRecords uint8 = 250

// gather brings all ranks' measurements to rank 0, after the last step and outside the books.
func (r *run) gather(ctx context.Context, w *Worker) error {
	if r.opts.World == nil {
		return nil
	}
	wire, heap := w.host, w.hostHeap
	if wire.Rank() != 0 {
		raw, err := json.Marshal(r.share(wire.Rank()))
		if err != nil {
			return fmt.Errorf("measurements: %w", err)
		}
		size := heap.New(tensor.Buffers, tensor.I32, 1)
		size.I32()[0] = int32(len(raw))
		text := heap.New(tensor.Buffers, tensor.I32, len(raw))
		for i, b := range raw {
			text.I32()[i] = int32(b)
		}
		for i, t := range []*tensor.Tensor{size, text} {
			if _, err := wire.Send(ctx, 0, comm.Tag{Kind: tagRecords, Micro: i}, t).Wait(ctx); err != nil {
				return fmt.Errorf("measurements: %w", err)
			}
		}
		return nil
	}
	for from := 1; from < wire.Size(); from++ {
		raw, err := receiveBytes(ctx, wire, from)
		if err != nil {
			return fmt.Errorf("measurements: %w", err)
		}
		var s share
		if err := json.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("measurements of rank %d: %w", from, err)
		}
		r.book(from, s)
	}
	return nil
}

func receiveBytes(ctx context.Context, wire comm.Transport, from int) ([]byte, error) {
	n := 1
	for i := range 2 {
		t, _, err := wire.Recv(ctx, from, comm.Tag{Kind: tagRecords, Micro: i}, comm.Spec{Kind: tensor.Buffers, DType: tensor.I32, Shape: []int{n}})
		if err != nil {
			return nil, err
		}
		if i == 0 {
			n = int(t.I32()[0])
			t.Release()
			continue
		}
		defer t.Release()
		raw := make([]byte, n)
		for j, b := range t.I32() {
			raw[j] = byte(b)
		}
		return raw, nil
	}
	return nil, nil
}

func (r *run) share(rank int) share {
	s := r.recs.slots[rank]
	out := share{Comm: s.comm, Memory: s.memory, Params: s.params, Ops: s.ops, Calls: s.calls, Resident: resident()}
	for _, x := range s.steps {
		out.Steps = append(out.Steps, shareSpan{x.start, x.end, x.took, x.busy, x.idle, x.move})
	}
	r.keep.mu.Lock()
	defer r.keep.mu.Unlock()
	out.Saves = r.keep.saves
	return out
}

// book enters another process's measurements.
func (r *run) book(rank int, s share) {
	slot := r.recs.slots[rank]
	slot.comm, slot.memory, slot.params, slot.ops, slot.calls = s.Comm, s.Memory, s.Params, s.Ops, s.Calls
	for _, x := range s.Steps {
		slot.steps = append(slot.steps, span{x.Start, x.End, x.Took, x.Busy, x.Idle, x.Move})
	}
	for _, save := range s.Saves {
		r.keep.book(save)
	}
	r.recs.resident += s.Resident
}
