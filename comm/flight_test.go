package comm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"triax/comm"
	"triax/comm/commtest"
	"triax/comm/local"
	"triax/tensor"
)

// TestRecorderTellsOfAHang: a rank waits for a message that never comes; its recorder says so.
func TestRecorderTellsOfAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		w := local.New(2)
		defer w.Close()
		var recs [2]*comm.Recorder
		for rank := range recs {
			recs[rank] = comm.NewRecorder(rank)
			mem := commtest.Host()
			r := commtest.Rank{Wire: comm.Recorded(w.Rank(rank, mem.Heap()), recs[rank]), Mem: mem}
			go func() {
				m, err := r.Wire.Join(ctx, "tp [0 1]", []int{0, 1})
				if err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(rank) * time.Second)
				if _, err := m.AllReduce(ctx, tensor.Of(tensor.F32, make([]float32, 6), 6), comm.Sum); err != nil {
					t.Error(err)
				}
				if rank == 0 {
					r.Wire.Send(ctx, 1, comm.Tag{Kind: comm.TagForward, Stage: 1, Micro: 2}, r.Mem.New(tensor.Activations, 4))
					return
				}
				r.Wire.Recv(ctx, 0, comm.Tag{Kind: comm.TagForward, Stage: 1, Micro: 3}, comm.Spec{Shape: []int{2, 2}})
			}()
		}
		time.Sleep(6 * time.Second)
		for rank, want := range []string{`rank 0: 2 calls
  1 all_reduce of 6 float32 on tp [0 1]: took 1s
  2 send of 4 float32 to rank 1, forward to stage 1, microbatch 2: took 0s`, `rank 1: 2 calls
  1 all_reduce of 6 float32 on tp [0 1]: took 0s
  2 recv of 4 float32 from rank 0, forward to stage 1, microbatch 3: under way for 5s`} {
			if got := recs[rank].String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		}
		if got := recs[0].UnderWay(); got != "" {
			t.Errorf("rank 0 is in %q", got)
		}
		if got, want := recs[1].UnderWay(), "recv of 4 float32 from rank 0, forward to stage 1, microbatch 3: under way for 5s"; got != want {
			t.Errorf("rank 1 is in %q, want %q", got, want)
		}
		stop(errors.New("hung"))
		synctest.Wait()
		if got, want := recs[1].String(), "failed after 5s"; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q at its end", got, want)
		}
	})
}

// TestRecordedConformance: a recorded transport is a transport like any other.
func TestRecordedConformance(t *testing.T) {
	commtest.Run(t, func(t *testing.T, size int) []commtest.Rank {
		ranks := world(t, size)
		for i := range ranks {
			ranks[i].Wire = comm.Recorded(ranks[i].Wire, comm.NewRecorder(i))
		}
		return ranks
	})
}

// sequences plays calls of two ranks, each rank its own, on a transport that does not compare them.
func sequences(t *testing.T, calls [2][]comm.Step) [2]comm.Sequence {
	t.Helper()
	var out [2]comm.Sequence
	for rank, steps := range calls {
		rec := comm.NewRecorder(rank)
		m, err := comm.Recorded(deaf{}, rec).Join(t.Context(), "dp [0 1]", []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			replay(t, m, s)
		}
		all := rec.Sequences()
		if len(all) != 1 {
			t.Fatalf("%d sequences", len(all))
		}
		out[rank] = all[0]
	}
	return out
}

func replay(t *testing.T, m comm.Collective, s comm.Step) {
	t.Helper()
	x := tensor.Of(s.DType, make([]float32, s.Len), s.Len)
	y := tensor.Of(s.DType, make([]float32, 2*s.Len), 2*s.Len)
	var err error
	switch s.Kind {
	case comm.KindAllReduce:
		_, err = m.AllReduce(t.Context(), x, s.Op)
	case comm.KindReduceScatter:
		_, err = m.ReduceScatter(t.Context(), y, x)
	case comm.KindAllGather:
		_, err = m.AllGather(t.Context(), y, x)
	case comm.KindBroadcast:
		_, err = m.Broadcast(t.Context(), x, s.Root)
	case comm.KindAllToAll:
		_, err = m.AllToAll(t.Context(), y, x)
	case comm.KindBarrier:
		_, err = m.Barrier(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// deaf is a transport that does nothing and notices nothing.
type deaf struct{ comm.Transport }

func (deaf) Join(context.Context, string, []int) (comm.Collective, error) { return deafGroup{}, nil }

type deafGroup struct{}

func (deafGroup) AllReduce(context.Context, *tensor.Tensor, comm.Op) (comm.Times, error) {
	return comm.Times{}, nil
}
func (deafGroup) ReduceScatter(context.Context, *tensor.Tensor, *tensor.Tensor) (comm.Times, error) {
	return comm.Times{}, nil
}
func (deafGroup) AllGather(context.Context, *tensor.Tensor, *tensor.Tensor) (comm.Times, error) {
	return comm.Times{}, nil
}
func (deafGroup) Broadcast(context.Context, *tensor.Tensor, int) (comm.Times, error) {
	return comm.Times{}, nil
}
func (deafGroup) AllToAll(context.Context, *tensor.Tensor, *tensor.Tensor) (comm.Times, error) {
	return comm.Times{}, nil
}
func (deafGroup) Barrier(context.Context) (comm.Times, error) { return comm.Times{}, nil }

// TestB76SameSequence: ranks of which some skip a collective, or call others, are told apart, and the first difference is named.
func TestB76SameSequence(t *testing.T) {
	sum := func(n int) comm.Step { return comm.Step{Kind: comm.KindAllReduce, Len: n} }
	gather := func(n int) comm.Step { return comm.Step{Kind: comm.KindAllGather, Len: n} }
	many := slices.Repeat([]comm.Step{sum(3), gather(4)}, 100)
	odd := slices.Clone(many)
	odd[2] = sum(4)
	oddLate := slices.Clone(many)
	oddLate[150] = comm.Step{Kind: comm.KindAllReduce, Len: 3, Op: comm.Max}
	for _, c := range []struct {
		name string
		a, b []comm.Step
		want string
	}{
		{"same", many, many, ""},
		{"one call skipped", []comm.Step{sum(1), gather(2), sum(3)}, []comm.Step{sum(1), sum(3)},
			"group dp [0 1]: call 2: rank 0 called all_gather of 2 float32, rank 1 called all_reduce of 3 float32"},
		{"last call missing", []comm.Step{sum(1), gather(2)}, []comm.Step{sum(1)},
			"group dp [0 1]: call 2: rank 0 called all_gather of 2 float32, rank 1 did not call anything"},
		{"two swapped", []comm.Step{sum(5), sum(6)}, []comm.Step{sum(6), sum(5)},
			"group dp [0 1]: call 1: rank 0 called all_reduce of 5 float32, rank 1 called all_reduce of 6 float32"},
		{"operation", many, oddLate,
			"group dp [0 1]: call 151: rank 0 called all_reduce of 3 float32, rank 1 called all_reduce of the maximum of 3 float32"},
		{"root", []comm.Step{{Kind: comm.KindBroadcast, Len: 2}}, []comm.Step{{Kind: comm.KindBroadcast, Len: 2, Root: 1}},
			"group dp [0 1]: call 1: rank 0 called broadcast of 2 float32 from place 0, rank 1 called broadcast of 2 float32 from place 1"},
		{"far behind", many[:1], many, "group dp [0 1]: rank 0 made 1 calls, rank 1 made 200"},
		{"long ago", many, odd,
			"group dp [0 1]: ranks 0 and 1 called different things before call 137, the first that both still know"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sequences(t, [2][]comm.Step{c.a, c.b})
			err := comm.SameSequence(s[0], s[1])
			if got := fmt.Sprint(err); (c.want == "") != (err == nil) || err != nil && got != c.want {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if same := slices.Equal(s[0].Digest(), s[1].Digest()); same != (c.want == "") {
				t.Errorf("digests equal: %v", same)
			}
			for _, x := range s[0].Digest() {
				if x != float64(float32(x)) {
					t.Errorf("digest holds %v, which float32 does not", x)
				}
			}
		})
	}
}
