package data

import "math/bits"

// Permutation is a bijection of 0..n-1 chosen by a key, computed an element at a time: an epoch's shuffle that
// takes no memory and needs no history. It is a balanced Feistel network over the smallest even number of bits
// that holds n, applied again while the result lies outside (cycle walking; Black & Rogaway 2002, §3).
type Permutation struct {
	n    uint64
	half uint // bits of a half
	key  uint64
}

// NewPermutation makes the permutation of n elements, n >= 1, for a key.
func NewPermutation(n int, key uint64) Permutation {
	half := max(1, (bits.Len64(uint64(n-1))+1)/2)
	return Permutation{uint64(n), uint(half), key}
}

// rounds is what makes small domains, where a round mixes a few bits only, look random.
const rounds = 12

// At is where element i goes, 0 <= i < n. A call takes fewer than four walks on average.
func (p Permutation) At(i int) int {
	x := uint64(i)
	for {
		x = p.network(x)
		if x < p.n {
			return int(x)
		}
	}
}

func (p Permutation) network(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := x>>p.half, x&mask
	for r := range uint64(rounds) {
		left, right = right, left^(mix(p.key+mix(r<<32|right))&mask)
	}
	return left<<p.half | right
}

// mix is a bijection of 64 bits whose output bits each depend on all input bits (the finalizer of SplitMix64;
// Steele, Lea & Flood 2014, Figure 15).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
