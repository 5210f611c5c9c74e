package tensor

import "math"

// Bits is number i of the random stream named by seed: 64 bits, a pure function of both, so any part
// of a stream can be made alone, in any order, on any rank. It is SplitMix64 (Steele, Lea & Flood 2014,
// fig. 15) started from the mixed seed.
func Bits(seed, i uint64) uint64 { return mix(mix(seed+golden) + (i+1)*golden) }

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Mask is a dropout mask: element i is dropped when Bits(seed, i) / 2^64 < rate. All devices drop the
// same elements.
type Mask struct{ start, limit uint64 }

// NewMask is the mask of a stream. The rate is in [0, 1).
func NewMask(seed uint64, rate float64) Mask {
	return Mask{start: mix(seed+golden) + golden, limit: uint64(math.Ldexp(rate, 64))}
}

// Stream is the state of the stream at element i, which grows by step an element, and the limit below which the mix of a state
// drops its element: what a kernel needs that makes the mask itself.
func (m Mask) Stream(i uint64) (state, step, limit uint64) {
	return m.start + i*golden, golden, m.limit
}

// Keeps says whether element i stays.
func (m Mask) Keeps(i uint64) bool { return mix(m.start+i*golden) >= m.limit }
