// Package commtest is what every transport must pass, whatever carries the bytes.
//
// A transport's own test calls Run with a function that opens a world of so many ranks; each check plays all ranks of such a world
// at once, one goroutine a rank, and compares what they got with plain arithmetic. Reductions are checked with whole numbers, whose
// sums are exact in any order, and once more with fractions, whose sums must have the same bits on all members.
//
//	           rank 0 ──┐                     ┌── what it should have
//	open(n) ─▶ rank 1 ──┼─ the same call ─────┤
//	           rank 2 ──┘   under a deadline  └── or which error, on whom
//
// A world that hangs fails by its deadline, with what each rank was doing. Checks that guard against a known kind of fault
// bear its number (B68, B69, B77).
//
// Read next: package comm, for the contract; comm/local, for the transport that is simplest to follow.
package commtest
