package comm_test

import (
	"testing"
	"time"

	"triax/comm"
)

// TestWire: bytes on the wire of bandwidth-optimal algorithms.
func TestWire(t *testing.T) {
	for _, c := range []struct {
		kind  comm.CallKind
		group int
		want  float64
	}{
		{comm.KindAllReduce, 2, 1200}, {comm.KindAllReduce, 4, 1800},
		{comm.KindReduceScatter, 4, 900}, {comm.KindAllGather, 4, 900}, {comm.KindAllToAll, 3, 800},
		{comm.KindBroadcast, 4, 1200}, {comm.KindSend, 2, 1200}, {comm.KindRecv, 2, 0}, {comm.KindBarrier, 4, 0},
	} {
		if got := comm.Wire(c.kind, 1200, c.group); got != c.want {
			t.Errorf("%s of 1200 bytes among %d: %v bytes, want %v", c.kind, c.group, got, c.want)
		}
	}
}

// TestLedger: calls add up by axis and kind; hooks see each; sums merge and can be set back.
func TestLedger(t *testing.T) {
	var seen []comm.Call
	l := &comm.Ledger{OnCall: func(c comm.Call) { seen = append(seen, c) }}
	call := comm.Call{Axis: "dp", Kind: comm.KindAllReduce, Bytes: 100, Group: 2, Times: comm.Times{Wait: time.Second, Move: 2 * time.Second}}
	l.Add(call)
	before := l.Entries()
	l.Add(call)
	l.Add(comm.Call{Axis: "dp", Kind: comm.KindAllGather, Bytes: 7, Group: 2})
	l.Add(comm.Call{Axis: "cp", Kind: comm.KindSend, Bytes: 9, Group: 2})
	if len(seen) != 4 {
		t.Errorf("the hook saw %d calls", len(seen))
	}
	want := []comm.Entry{
		{Axis: "cp", Kind: comm.KindSend, Calls: 1, Bytes: 9, Wire: 9},
		{Axis: "dp", Kind: comm.KindAllGather, Calls: 1, Bytes: 7, Wire: 3.5},
		{Axis: "dp", Kind: comm.KindAllReduce, Calls: 2, Bytes: 200, Wire: 200, Wait: 2 * time.Second, Move: 4 * time.Second},
	}
	equal := func(what string, got, want []comm.Entry) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %+v, want %+v", what, got[i], want[i])
			}
		}
	}
	equal("sums", l.Entries(), want)
	sum := &comm.Ledger{}
	sum.Merge(before)
	sum.Merge(before)
	equal("merged", sum.Entries(), []comm.Entry{want[2]})
	l.Restore(before)
	equal("set back", l.Entries(), before)
	var none *comm.Ledger
	none.Add(call) // a rank that keeps no books
}
