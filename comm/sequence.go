package comm

import (
	"fmt"
	"slices"

	"triax/tensor"
)

// Step is one collective of a group: what all members must agree on.
type Step struct {
	Kind  CallKind
	DType tensor.DType
	Len   int // elements of the source: what is reduced, this member's part of a gather
	Op    Op
	Root  int // of a broadcast
}

// String prints "all_reduce of 12 float32".
func (s Step) String() string {
	switch {
	case s.Kind == KindBarrier:
		return string(s.Kind)
	case s.Kind == KindBroadcast:
		return fmt.Sprintf("%s of %d %v from place %d", s.Kind, s.Len, s.DType, s.Root)
	case s.Op == Max:
		return fmt.Sprintf("%s of the maximum of %d %v", s.Kind, s.Len, s.DType)
	}
	return fmt.Sprintf("%s of %d %v", s.Kind, s.Len, s.DType)
}

// Sequence is the collectives that one rank has called on one group, in order: a hash of all and the last few themselves.
// Ranks whose sequences differ would hang, or sum what does not belong together, on a transport that does not compare calls.
type Sequence struct {
	Group string
	Rank  int
	Calls int
	Hash  uint64
	Last  []Step // oldest first; the last one is call number Calls
}

// sequenceKeeps is how many calls a sequence keeps in full.
const sequenceKeeps = 64

func (s *Sequence) add(step Step) {
	s.Calls++
	if s.Calls == 1 {
		s.Hash = fnvBasis
	}
	s.Hash = mix(s.Hash, string(step.Kind), uint64(step.DType), uint64(step.Len), uint64(step.Op), uint64(step.Root))
	if len(s.Last) == sequenceKeeps {
		copy(s.Last, s.Last[1:])
		s.Last = s.Last[:sequenceKeeps-1]
	}
	s.Last = append(s.Last, step)
}

// The constants of FNV-1a with 64 bits (RFC 9923, §5): the same in every process.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

func mix(h uint64, word string, numbers ...uint64) uint64 {
	for i := range len(word) {
		h = (h ^ uint64(word[i])) * fnvPrime
	}
	for _, n := range numbers {
		for range 8 {
			h = (h ^ n&0xff) * fnvPrime
			n >>= 8
		}
	}
	return h
}

// Digest is the number of calls and the hash in whole numbers below 2^16, exact in float32: what a rank in another process can
// gather and compare.
func (s Sequence) Digest() []float64 {
	d := make([]float64, 0, 8)
	for _, word := range []uint64{uint64(s.Calls), s.Hash} {
		for shift := 0; shift < 64; shift += 16 {
			d = append(d, float64(word>>shift&0xffff))
		}
	}
	return d
}

// SameSequence compares the members' sequences on one group. The error names the first call in which two ranks differ and what each
// called, as far back as the sequences are kept.
func SameSequence(members ...Sequence) error {
	for _, m := range members[1:] {
		if err := sameSequence(members[0], m); err != nil {
			return err
		}
	}
	return nil
}

func sameSequence(a, b Sequence) error {
	if a.Group != b.Group {
		panic(fmt.Sprintf("comm: sequences of groups %q and %q compared", a.Group, b.Group))
	}
	if a.Calls == b.Calls && a.Hash == b.Hash {
		return nil
	}
	// Calls are numbered from 1. Both keep those from call number from on.
	from := max(a.Calls-len(a.Last), b.Calls-len(b.Last)) + 1
	if min(a.Calls, b.Calls) < from-1 {
		return fmt.Errorf("group %s: rank %d made %d calls, rank %d made %d", a.Group, a.Rank, a.Calls, b.Rank, b.Calls)
	}
	for n := from; n <= max(a.Calls, b.Calls); n++ {
		x, y := a.call(n), b.call(n)
		if x == y {
			continue
		}
		return fmt.Errorf("group %s: call %d: rank %d %s, rank %d %s", a.Group, n, a.Rank, x, b.Rank, y)
	}
	return fmt.Errorf("group %s: ranks %d and %d called different things before call %d, the first that both still know", a.Group, a.Rank, b.Rank, from)
}

// call says what call number n was.
func (s Sequence) call(n int) string {
	if n > s.Calls {
		return "did not call anything"
	}
	return "called " + s.Last[n-s.Calls+len(s.Last)-1].String()
}

func (s Sequence) clone() Sequence {
	s.Last = slices.Clone(s.Last)
	return s
}
