package local_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"triax/comm"
	"triax/comm/local"
	"triax/tensor"
)

// TestHandOver: a message is not copied.
func TestHandOver(t *testing.T) {
	ranks := open()(t, 2)
	x := ranks[0].Mem.Heap().New(tensor.Gradients, tensor.F32, 4)
	memory := &x.F32()[0]
	ranks[0].Wire.Send(t.Context(), 1, comm.Tag{}, x)
	y, _, err := ranks[1].Wire.Recv(t.Context(), 0, comm.Tag{}, floats(4))
	if err != nil {
		t.Fatal(err)
	}
	if &y.F32()[0] != memory {
		t.Error("the receiver got other memory")
	}
	if a, b := ranks[0].Mem.Heap().Total().Now, ranks[1].Mem.Heap().Usage(tensor.Activations).Now; a != 0 || b != 16 {
		t.Errorf("sender holds %d bytes, receiver %d", a, b)
	}
	y.Release()
}

// TestRendezvous: a send ends when the receiver takes the message, not before.
func TestRendezvous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := open(local.Rendezvous())(t, 2)
		sent := ranks[0].Wire.Send(t.Context(), 1, comm.Tag{}, ranks[0].Mem.Heap().New(tensor.Activations, tensor.F32, 4))
		go func() {
			time.Sleep(3 * time.Second)
			x, _, err := ranks[1].Wire.Recv(t.Context(), 0, comm.Tag{}, floats(4))
			if err != nil {
				t.Error(err)
			}
			x.Release()
		}()
		times, err := sent.Wait(t.Context())
		if err != nil || times.Wait != 3*time.Second {
			t.Errorf("ended after %+v, %v", times, err)
		}
	})
}

// TestRendezvousDeadlock: two ranks that both wait for their send before they receive hang; the cause comes out.
func TestRendezvousDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("too late")
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer stop()
		ranks := open(local.Rendezvous())(t, 2)
		for i, r := range ranks {
			go func() {
				_, err := r.Wire.Send(ctx, 1-i, comm.Tag{}, r.Mem.Heap().New(tensor.Activations, tensor.F32, 4)).Wait(ctx)
				if !errors.Is(err, late) {
					t.Errorf("rank %d: %v", i, err)
				}
			}()
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestClose: messages never received are given back, and their sends end.
func TestClose(t *testing.T) {
	w := local.New(2, local.Rendezvous())
	heap := tensor.NewHeap(nil, true)
	sent := w.Rank(0, heap).Send(t.Context(), 1, comm.Tag{Kind: comm.TagBackward, Micro: 4}, heap.New(tensor.Activations, tensor.F32, 4))
	w.Close()
	if now := heap.Total().Now; now != 0 {
		t.Errorf("%d bytes are left", now)
	}
	if _, err := sent.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "backward to stage 0, microbatch 4") {
		t.Errorf("the send ended with %v", err)
	}
}

// TestCopied: a sender that goes on using what it has sent is found out.
func TestCopied(t *testing.T) {
	for _, c := range []struct {
		name string
		use  func(x []float32)
		want string
	}{
		{"untouched", func([]float32) {}, ""},
		{"read", func(x []float32) {
			if x[2] == x[2] {
				t.Errorf("the sender reads %v, want poison", x[2])
			}
		}, ""},
		{"written", func(x []float32) { x[2] = 7 }, "element 2 of float32[4] was written to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ranks := open(local.Copied())(t, 2)
			x := ranks[0].Mem.Heap().New(tensor.Activations, tensor.F32, 4)
			copy(x.F32(), []float32{1, float32(math.NaN()), 3, 4})
			data := x.F32()
			ranks[0].Wire.Send(t.Context(), 1, comm.Tag{}, x)
			c.use(data)
			y, _, err := ranks[1].Wire.Recv(t.Context(), 0, comm.Tag{}, floats(4))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			} else if err != nil || y.F32()[0] != 1 || y.F32()[2] != 3 || y.F32()[3] != 4 {
				t.Errorf("received %v, %v", y, err)
			}
			y.Release()
			for i, r := range ranks {
				if now := r.Mem.Heap().Total().Now; now != 0 {
					t.Errorf("rank %d holds %d bytes", i, now)
				}
			}
		})
	}
}

// TestTypesOfMessages: messages of any type arrive whole, copied or not.
func TestTypesOfMessages(t *testing.T) {
	for name, opts := range map[string][]local.Option{"handed over": nil, "copied": {local.Copied()}} {
		for _, dtype := range []tensor.DType{tensor.F32, tensor.F64, tensor.I32, tensor.BF16} {
			ranks := open(opts...)(t, 2)
			x := ranks[0].Mem.Heap().New(tensor.Inputs, dtype, 3)
			fill(x, 5)
			ranks[0].Wire.Send(t.Context(), 1, comm.Tag{}, x)
			y, _, err := ranks[1].Wire.Recv(t.Context(), 0, comm.Tag{}, comm.Spec{Kind: tensor.Inputs, DType: dtype, Shape: []int{3}})
			if err != nil {
				t.Fatal(err)
			}
			if got := firstOf(y); got != 5 {
				t.Errorf("%v, %s: %v, want 5", dtype, name, got)
			}
			y.Release()
		}
	}
}

// fill sets every element to a small whole number; of a bfloat16, the bits.
func fill(t *tensor.Tensor, v int) {
	switch d := t.Data().(type) {
	case []float32:
		for i := range d {
			d[i] = float32(v)
		}
	case []float64:
		for i := range d {
			d[i] = float64(v)
		}
	case []int32:
		for i := range d {
			d[i] = int32(v)
		}
	case []uint16:
		for i := range d {
			d[i] = uint16(v)
		}
	}
}

func firstOf(t *tensor.Tensor) int {
	switch d := t.Data().(type) {
	case []float32:
		return int(d[0])
	case []float64:
		return int(d[0])
	case []int32:
		return int(d[0])
	case []uint16:
		return int(d[0])
	}
	return -1
}

// TestTwoReceives: two receives of one message line at a time are a mistake of the caller, and said so.
func TestTwoReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ranks := open()(t, 2)
		go func() { ranks[1].Wire.Recv(ctx, 0, comm.Tag{}, floats(1)) }()
		synctest.Wait()
		if _, _, err := ranks[1].Wire.Recv(ctx, 0, comm.Tag{}, floats(1)); err == nil || !strings.Contains(err.Error(), "two receives") {
			t.Errorf("got %v", err)
		}
		stop()
	})
}
