//go:build cgo && linux

package nccl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"triax/comm"
	"triax/comm/commtest"
	"triax/tensor"
)

// TestPartition: the axes of a mesh by one split each; Join takes the parts, and makes what no partition made.
func TestPartition(t *testing.T) {
	all := opened(t, 6, true, false)
	rows, columns := [][]int{{0, 1, 2}, {3, 4, 5}}, [][]int{{3, 0}, {1, 4}}
	errs := make([]error, len(all))
	each(len(all), func(i int) {
		mem := commtest.Host()
		wire := all[i].Transport(mem.Heap())
		errs[i] = errors.Join(all[i].Partition(t.Context(), "row", rows), all[i].Partition(t.Context(), "column", columns))
		if errs[i] != nil {
			return
		}
		sum := func(name string, ranks []int, want float32) error {
			made := len(all[i].parts)
			g, err := wire.Join(t.Context(), fmt.Sprintf("%s %v", name, ranks), ranks)
			if err != nil {
				return err
			}
			if name != "own" && len(all[i].parts) != made-1 {
				return fmt.Errorf("%s: the part was not taken", name)
			}
			x := mem.New(tensor.Buffers, 1)
			x.F32()[0] = float32(i + 1)
			if _, err := g.AllReduce(t.Context(), x, comm.Sum); err != nil {
				return err
			}
			if x.F32()[0] != want {
				return fmt.Errorf("%s of rank %d: %v, want %v", name, i, x.F32()[0], want)
			}
			return nil
		}
		errs[i] = sum("row", rows[i/3], []float32{6, 15}[i/3])
		if i != 2 && i != 5 {
			errs[i] = errors.Join(errs[i], sum("column", columns[i%3], []float32{5, 7}[i%3]))
		}
		errs[i] = errors.Join(errs[i], sum("own", []int{0, 1, 2, 3, 4, 5}, 21))
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestPartitionsDiffer: ranks that do not agree on an axis's groups all hear of it.
func TestPartitionsDiffer(t *testing.T) {
	all := opened(t, 2, false, false)
	errs := make([]error, 2)
	each(2, func(i int) { errs[i] = all[i].Partition(t.Context(), "tp", [][][]int{{{0, 1}}, {{1, 0}}}[i]) })
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "rank 1 has groups [[1 0]], rank 0 [[0 1]]") {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// joined are the transports and whole groups of all ranks.
func joined(t *testing.T, all []*World) (mem []tensor.Memory, groups []comm.Collective) {
	t.Helper()
	mem, groups = make([]tensor.Memory, len(all)), make([]comm.Collective, len(all))
	errs := make([]error, len(all))
	each(len(all), func(i int) {
		mem[i] = commtest.Host()
		groups[i], errs[i] = all[i].Transport(mem[i].Heap()).Join(t.Context(), "all", all[i].all())
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return mem, groups
}

// reduces is an all-reduce of one number by every rank for which it is not left out.
func reduces(t *testing.T, mem []tensor.Memory, groups []comm.Collective, without int) []error {
	t.Helper()
	errs := make([]error, len(groups))
	each(len(groups), func(i int) {
		if i == without {
			return
		}
		x := mem[i].New(tensor.Buffers, 1)
		defer x.Release()
		_, errs[i] = groups[i].AllReduce(t.Context(), x, comm.Sum)
	})
	return errs
}

// TestLost: a rank whose connection ends takes all others out of their calls, named, whether the hub knows of the calls or the device has them.
func TestLost(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		t.Run(fmt.Sprint("in order ", inOrder), func(t *testing.T) {
			all := opened(t, 3, true, inOrder)
			mem, groups := joined(t, all)
			time.AfterFunc(20*time.Millisecond, func() { all[1].link.conn.Close() })
			for i, err := range reduces(t, mem, groups, 1) {
				var remote *RemoteError
				if i != 1 && (!errors.As(err, &remote) || remote.Rank != 1 || !strings.Contains(err.Error(), "rank 1 is gone")) {
					t.Errorf("rank %d: %v", i, err)
				}
			}
			<-all[0].Failed()
			if err := all[0].Cause(); err == nil || !strings.Contains(err.Error(), "rank 1 is gone") {
				t.Errorf("cause: %v", err)
			}
			if errs := reduces(t, mem, groups, 1); errs[0] == nil || errs[2] == nil {
				t.Errorf("calls after the end: %v", errs)
			}
			for i, m := range mem {
				if now := m.Heap().Total().Now; now != 0 {
					t.Errorf("rank %d holds %d bytes", i, now)
				}
			}
		})
	}
}

// TestStop: a rank's own words reach the others.
func TestStop(t *testing.T) {
	all := opened(t, 3, false, false)
	mem, groups := joined(t, all)
	time.AfterFunc(20*time.Millisecond, func() { all[2].Stop(errors.New("rank 2: step 7: the loss is not finite")) })
	for i, err := range reduces(t, mem, groups, 2) {
		if i != 2 && (err == nil || err.Error() != "rank 2: step 7: the loss is not finite") {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// TestOtherOrder: with calls in order and without the hub, ranks that issue in different orders hang on devices that run one kernel at a time, as the
// library's own rules say; with the hub they do not. The hang ends with its context.
func TestOtherOrder(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		all := opened(t, 2, true, inOrder)
		mem, first := joined(t, all)
		second := make([]comm.Collective, 2)
		errs := make([]error, 2)
		each(2, func(i int) {
			second[i], errs[i] = (&transport{all[i]}).Join(t.Context(), "again", []int{0, 1})
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		limit := 10 * time.Second
		if inOrder {
			limit = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("hung"))
		one := func(i int, g comm.Collective) error {
			x := mem[i].New(tensor.Buffers, 1)
			defer x.Release()
			_, err := g.AllReduce(ctx, x, comm.Sum)
			return err
		}
		each(2, func(i int) { // both calls at once, begun in the one order by rank 0 and in the other by rank 1
			groups := [][]comm.Collective{{first[i], second[i]}, {second[i], first[i]}}[i]
			got := make([]error, 2)
			each(2, func(k int) {
				time.Sleep(time.Duration(k) * 50 * time.Millisecond)
				got[k] = one(i, groups[k])
			})
			errs[i] = errors.Join(got...)
		})
		cancel()
		if err := errors.Join(errs...); inOrder != (err != nil) {
			t.Errorf("in order %v: %v", inOrder, err)
		}
	}
}

// TestRollCall: ranks say what they are doing; one that is gone does not.
func TestRollCall(t *testing.T) {
	all := opened(t, 3, false, false)
	all[1].Report(func() string { return "in step 3" })
	all[2].Report(func() string { return "in step 4" })
	if got := fmt.Sprint(all[0].RollCall([]int{1, 2}, 5*time.Second)); got != "map[1:in step 3 2:in step 4]" {
		t.Error(got)
	}
	all[2].link.conn.Close()
	<-all[0].Failed()
	if got := fmt.Sprint(all[0].RollCall([]int{1, 2}, 50*time.Millisecond)); got != "map[1:in step 3]" {
		t.Error(got)
	}
}

// TestAgree: rank 0's words, in order, also before there is a device; a rank without one leaves and fails like any other.
func TestAgree(t *testing.T) {
	hub, err := Listen(t.Context(), "127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	var two [2]*World
	for i := range two {
		if two[i], err = Connect(t.Context(), Options{Rank: i, Size: 2, Hub: hub.Address()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"runs/a", "runs/b"} {
		if _, err := two[0].Agree(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"runs/a", "runs/b"} {
		if got, err := two[1].Agree(t.Context(), ""); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	two[0].Stop(errors.New("no such file"))
	<-two[1].Failed()
	if _, err := two[1].Agree(t.Context(), ""); err == nil || err.Error() != "no such file" {
		t.Errorf("after a failure: %v", err)
	}
	if err := errors.Join(two[0].Close(), two[1].Close(), hub.Close()); err != nil {
		t.Error(err)
	}
}

// TestMeeting: a hub that comes late is waited for; contradictions and hubs that never come are errors that say so.
func TestMeeting(t *testing.T) {
	if library.err != nil {
		t.Skipf("SKIPPED: %v", library.err)
	}
	if os.Getenv("NCCL_LAUNCH_ORDER_IMPLICIT") == "" && library.Version.Ordered() {
		t.Log("not opened yet: the order of issue is still the library's own")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	taken.Close()
	late := make(chan *Hub, 1)
	time.AfterFunc(100*time.Millisecond, func() {
		h, err := Listen(t.Context(), address, 1)
		if err != nil {
			t.Error(err)
		}
		late <- h
	})
	o := Options{Size: 1, Hub: address, Library: library.Library, Device: host{-1}}
	w, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("NCCL_LAUNCH_ORDER_IMPLICIT") != "1" {
		t.Error("the library is not told to keep the order of issue")
	}
	h := <-late
	for what, bad := range map[string]Options{"2 ranks, the hub of 1": {Size: 2}, "rank 0 is there already": {Size: 1}, "rank 1 of 1": {Rank: 1, Size: 1}} {
		bad.Hub, bad.Library, bad.Device = address, library.Library, host{-1}
		if _, err := Open(t.Context(), bad); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(w.Close(), h.Close()); err != nil {
		t.Error(err)
	}
	o.Patience = 100 * time.Millisecond
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has not found the hub") {
		t.Errorf("no hub: %v", err)
	}
}

// TestHost: host memory goes by way of the hub, tag by tag, and what is not what was wanted is refused with both named.
func TestHost(t *testing.T) {
	all := opened(t, 2, false, false)
	heaps := []*tensor.Heap{tensor.NewHeap(nil, true), tensor.NewHeap(nil, true)}
	from, to := all[0].Host(heaps[0]), all[1].Host(heaps[1])
	for micro := range 3 {
		x := heaps[0].New(tensor.Buffers, tensor.I32, 2, 3)
		for i := range x.I32() {
			x.I32()[i] = int32(10*micro + i - 5)
		}
		if _, err := from.Send(t.Context(), 1, comm.Tag{Kind: 9, Micro: micro}, x).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := comm.Spec{Kind: tensor.Buffers, DType: tensor.I32, Shape: []int{2, 3}}
	for _, micro := range []int{2, 0} {
		x, _, err := to.Recv(t.Context(), 0, comm.Tag{Kind: 9, Micro: micro}, want)
		if err != nil {
			t.Fatal(err)
		}
		if got, last := fmt.Sprint(x.I32()), int32(10*micro); got != fmt.Sprint([]int32{last - 5, last - 4, last - 3, last - 2, last - 1, last}) {
			t.Errorf("message %d: %v", micro, got)
		}
		x.Release()
	}
	want.Shape = []int{6}
	if _, _, err := to.Recv(t.Context(), 0, comm.Tag{Kind: 9, Micro: 1}, want); err == nil || !strings.Contains(err.Error(), "it is int32[2 3], want int32[6]") {
		t.Errorf("another shape: %v", err)
	}
	if heaps[0].Total().Now != 0 || heaps[1].Total().Now != 0 {
		t.Error("memory is left")
	}
	if _, err := to.Join(t.Context(), "host", []int{0, 1}); err == nil {
		t.Error("a group of host memory")
	}
}
