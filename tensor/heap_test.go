package tensor

import (
	"math"
	"sync"
	"testing"
)

func TestLedgerByKind(t *testing.T) {
	h := NewHeap(nil, false)
	a := h.New(Parameters, F32, 10) // 40 bytes
	b := h.New(Activations, F64, 5) // 40
	c := h.New(Activations, BF16, 8)
	c.Release()
	d := h.New(Activations, I32, 1)
	check := func(what string, got, want Usage) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("parameters", h.Usage(Parameters), Usage{40, 40})
	check("activations", h.Usage(Activations), Usage{44, 56})
	check("total", h.Total(), Usage{84, 96})
	h.ResetPeak()
	check("activations after reset", h.Usage(Activations), Usage{44, 44})
	check("total after reset", h.Total(), Usage{84, 84})
	a.Release()
	b.Release()
	d.Release()
	check("total at the end", h.Total(), Usage{0, 84})
	check("gradients", h.Usage(Gradients), Usage{})
}

func TestRetainedMemoryStaysAccounted(t *testing.T) {
	h := NewHeap(nil, false)
	x := h.New(Buffers, F32, 4)
	x.Retain()
	x.Release()
	if got := h.Usage(Buffers).Now; got != 16 {
		t.Fatalf("%d bytes in use while a reference is left, want 16", got)
	}
	x.Release()
	if got := h.Usage(Buffers).Now; got != 0 {
		t.Fatalf("%d bytes in use after the last release", got)
	}
}

func TestMemoryIsReused(t *testing.T) {
	h := NewHeap(nil, false)
	for step := range 5 {
		x, y, ids := h.New(Activations, F32, 3, 4), h.New(Workspace, F32, 12), h.New(Inputs, I32, 12)
		if step > 0 && h.Fresh() != 3*48 {
			t.Fatalf("step %d: %d fresh bytes, want 144", step, h.Fresh())
		}
		x.Release()
		y.Release()
		ids.Release()
	}
	small := h.New(Activations, F32, 11)
	defer small.Release()
	if h.Fresh() != 3*48+44 {
		t.Fatalf("another size took %d fresh bytes", h.Fresh()-3*48)
	}
}

func TestSourceIsAsked(t *testing.T) {
	var asked []int
	h := NewHeap(func(d DType, n int) any {
		asked = append(asked, n)
		return make([]float64, n)
	}, false)
	h.New(Parameters, F64, 7).Release()
	h.New(Gradients, F64, 7).Release()
	if len(asked) != 1 || asked[0] != 7 {
		t.Fatalf("source asked for %v, want [7]", asked)
	}
}

func TestPoison(t *testing.T) {
	h := NewHeap(nil, true)
	for round := range 2 {
		f, d, i, b := h.New(Workspace, F32, 2), h.New(Workspace, F64, 2), h.New(Workspace, I32, 2), h.New(Workspace, BF16, 2)
		if x := f.F32()[1]; x == x {
			t.Errorf("round %d: float32 memory starts as %v", round, x)
		}
		if x := d.F64()[1]; x == x {
			t.Errorf("round %d: float64 memory starts as %v", round, x)
		}
		if x := i.I32()[1]; x != math.MinInt32 {
			t.Errorf("round %d: int32 memory starts as %v", round, x)
		}
		if x := Slice[uint16](b)[1]; x != 0x7fc0 {
			t.Errorf("round %d: bfloat16 memory starts as %#x", round, x)
		}
		f.F32()[1], d.F64()[1], i.I32()[1], Slice[uint16](b)[1] = 1, 1, 1, 1
		f.Release()
		d.Release()
		i.Release()
		b.Release()
	}
}

// Adopt moves the account, and where the memory goes back to.
func TestAdopt(t *testing.T) {
	from, to := NewHeap(nil, false), NewHeap(nil, false)
	x := from.New(Activations, F32, 4)
	to.Adopt(x.Flat(1, 2), Buffers) // through a view: the whole block moves
	if got := from.Total().Now; got != 0 {
		t.Errorf("sender still accounts %d bytes", got)
	}
	if got := to.Usage(Buffers).Now; got != 16 {
		t.Errorf("receiver accounts %d bytes, want 16", got)
	}
	x.Release()
	if to.Total().Now != 0 || from.Total().Now != 0 {
		t.Errorf("after release: receiver %d, sender %d bytes", to.Total().Now, from.Total().Now)
	}
	y := to.New(Buffers, F32, 4)
	defer y.Release()
	if to.Fresh() != 0 {
		t.Errorf("receiver took %d fresh bytes although it had been given as many", to.Fresh())
	}
	to.Adopt(Of(F32, []float32{1}, 1), Buffers) // owned by no heap: nothing to move
}

func TestHeapInManyGoroutines(t *testing.T) {
	h, other := NewHeap(nil, true), NewHeap(nil, true)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				x := h.New(Kind(g), F32, 1+i%5)
				x.Retain()
				if i%3 == 0 {
					other.Adopt(x, Buffers)
				}
				x.Release()
				x.Release()
			}
		})
	}
	wg.Wait()
	if h.Total().Now != 0 || other.Total().Now != 0 {
		t.Fatalf("%d and %d bytes in use at the end", h.Total().Now, other.Total().Now)
	}
}
