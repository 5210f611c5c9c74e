package comm

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// CallKind is what a call does.
type CallKind string

const (
	KindAllReduce     CallKind = "all_reduce"
	KindReduceScatter CallKind = "reduce_scatter"
	KindAllGather     CallKind = "all_gather"
	KindBroadcast     CallKind = "broadcast"
	KindAllToAll      CallKind = "all_to_all"
	KindBarrier       CallKind = "barrier"
	KindSend          CallKind = "send"
	KindRecv          CallKind = "recv"
)

// Call is one communication call of one rank.
type Call struct {
	Axis  string // "tp", "dp", "pp", "world", "tied", ...
	Kind  CallKind
	Bytes int64 // size of the whole tensor: what is reduced, the gathered result, the message
	Group int   // number of ranks; 2 for point-to-point
	Start time.Time
	Times
}

// Wire is the bytes that a rank puts on the wire in a bandwidth-optimal algorithm:
// n (g-1)/g for reduce-scatter, all-gather and all-to-all, twice that for all-reduce (Thakur et al. 2005, §4; Patarasuk
// & Yuan 2009), n for a message sent or broadcast, 0 for one received.
func Wire(kind CallKind, bytes int64, group int) float64 {
	n, g := float64(bytes), float64(group)
	switch kind {
	case KindAllReduce:
		return 2 * n * (g - 1) / g
	case KindReduceScatter, KindAllGather, KindAllToAll:
		return n * (g - 1) / g
	case KindSend, KindBroadcast:
		return n
	}
	return 0
}

// Entry is the sum over the calls of one axis and kind.
type Entry struct {
	Axis  string        `json:"axis"`
	Kind  CallKind      `json:"kind"`
	Calls int64         `json:"calls"`
	Bytes int64         `json:"bytes"`
	Wire  float64       `json:"wire_bytes"`
	Wait  time.Duration `json:"wait_ns"`
	Move  time.Duration `json:"move_ns"`
}

// String prints "tp all_reduce: 12 calls, 4096 bytes".
func (e Entry) String() string {
	return fmt.Sprintf("%s %s: %d calls, %d bytes", e.Axis, e.Kind, e.Calls, e.Bytes)
}

// Ledger adds up every call of one rank. It may be used by several goroutines.
type Ledger struct {
	// OnCall, when set, sees every call as it ends (traces, flight recorder, sequence checks).
	OnCall func(Call)

	mu      sync.Mutex
	entries map[[2]string]*Entry
}

// Add records a call.
func (l *Ledger) Add(c Call) {
	if l == nil {
		return
	}
	l.mu.Lock()
	if l.entries == nil {
		l.entries = map[[2]string]*Entry{}
	}
	key := [2]string{c.Axis, string(c.Kind)}
	e := l.entries[key]
	if e == nil {
		e = &Entry{Axis: c.Axis, Kind: c.Kind}
		l.entries[key] = e
	}
	e.Calls++
	e.Bytes += c.Bytes
	e.Wire += Wire(c.Kind, c.Bytes, c.Group)
	e.Wait += c.Wait
	e.Move += c.Move
	l.mu.Unlock()
	if l.OnCall != nil {
		l.OnCall(c)
	}
}

// Entries lists the sums, ordered by axis and kind.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Entry, 0, len(l.entries))
	for _, e := range l.entries {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Axis, b.Axis), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// Reset forgets all calls.
func (l *Ledger) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.entries)
}

// Merge adds another ledger's sums, as of another rank.
func (l *Ledger) Merge(entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[[2]string]*Entry{}
	}
	for _, e := range entries {
		key := [2]string{e.Axis, string(e.Kind)}
		sum := l.entries[key]
		if sum == nil {
			sum = &Entry{Axis: e.Axis, Kind: e.Kind}
			l.entries[key] = sum
		}
		sum.Calls += e.Calls
		sum.Bytes += e.Bytes
		sum.Wire += e.Wire
		sum.Wait += e.Wait
		sum.Move += e.Move
	}
}

// Restore sets the sums back to an earlier state, so that calls made since do not count.
func (l *Ledger) Restore(entries []Entry) {
	l.Reset()
	l.Merge(entries)
}
