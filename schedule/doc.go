// Package schedule says who does what when in a pipeline: pure data that is made by functions, proven by a verifier, put on a clock, drawn, and
// walked for real by pp.Runner.
//
// A Schedule is, for each pipeline rank, a list of ops. An op prints as "2F0": stage 2, forward, microbatch 0; I and W are the two halves of
// the backward, B both at once, R reduces a stage's gradients over its replicas, U updates. Two ranks and three microbatches under 1F1B, a
// backward taking twice as long as a forward:
//
//	0|F0F1 . .B0--F2B1-- . .B2--
//	1| .F0B0--F1B1--F2B2-- . . .
//
// What it costs is in its idle share, in the activations it holds, and in the messages between ranks: Simulate, Peaks and Lower say. The
// generators trade one for the other, each after its paper; Optimal finds, for small sizes, what no generator can beat.
//
// Verify proves what a run depends on: every op once, needs met, memory within Limit, no deadlock, even when a send waits for its receive;
// Meet the same for collectives among ranks. Transfers are not in the lists: they follow from Needs, and Lower writes them out for
// transports that block.
//
// Read op.go first, then onefoneb.go, verify.go and simulator.go; a new schedule is one function and a line in registry.go.
package schedule
