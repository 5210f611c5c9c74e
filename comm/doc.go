// Package comm is how ranks talk: collectives over groups of ranks, and messages between two.
//
// A Transport moves bytes and nothing else; a Group puts the rules that hold on every transport above it: which axis of the mesh
// a call belongs to, and a ledger of what it cost. A call only sums, takes a maximum, or copies; nothing here divides,
// so the one normaliser of the loss stays the only one. Every wait ends when the run's context does, with the cause of that end, so
// that all ranks stop together and name the one that failed.
//
//	layers, optimizer, pipeline
//	   │ AllReduce, Gather ...        │ Send, Recv (handed over, matched by sender, receiver and Tag)
//	   ▼                              ▼
//	 Group ── books in ──▶ Ledger     │         Stream: calls in order, beside the computation
//	   │ Collective                   │         Recorded: the same calls, written to a Recorder
//	   └──────────── Transport ───────┘
//	    comm/local (goroutines of one process), others
//
// All members of a group call the same things in the same order, and all ranks join all groups up front in one order. Where a
// transport cannot see that members disagree, their recorders can: SameSequence names the first call that differs. A rank that
// hangs is told by its Recorder, which lists the last calls and those under way.
//
// Cost: Wire gives the bytes that a call of n bytes among g ranks puts on the wire, 2n(g-1)/g for an all-reduce, half of that for
// its two halves. The ledger keeps waiting for peers (Wait) apart from moving data (Move), and takes one locked map access a call.
//
// Read next: transport.go for the contract, package comm/local for the transport that is simplest to follow, comm/commtest for what
// every transport must pass.
package comm
