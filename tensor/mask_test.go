package tensor

import (
	"math"
	"testing"
)

// SplitMix64 with state 1234567 begins with these numbers: known from the reference implementation
// that accompanies Steele, Lea & Flood 2014.
func TestMixIsSplitMix64(t *testing.T) {
	state := uint64(1234567)
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		state += golden
		if got := mix(state); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}

func TestMaskFollowsBits(t *testing.T) {
	for _, rate := range []float64{0, 0.1, 0.5, 0.999} {
		for seed := range uint64(3) {
			mask := NewMask(seed, rate)
			for i := range uint64(500) {
				if want := math.Ldexp(float64(Bits(seed, i)), -64) >= rate; mask.Keeps(i) != want {
					t.Fatalf("rate %v seed %d element %d: kept %v", rate, seed, i, !want)
				}
			}
		}
	}
}

// Streams of neighbouring seeds, and neighbouring elements of one stream, share no more bits than chance.
func TestBitsAreIndependent(t *testing.T) {
	const n = 4096
	for _, c := range []struct {
		name string
		pair func(i uint64) (uint64, uint64)
	}{
		{"seeds", func(i uint64) (uint64, uint64) { return Bits(1, i), Bits(2, i) }},
		{"elements", func(i uint64) (uint64, uint64) { return Bits(1, i), Bits(1, i+1) }},
		{"seed and element", func(i uint64) (uint64, uint64) { return Bits(i, 1), Bits(1, i+2) }},
		{"shifted seeds", func(i uint64) (uint64, uint64) { return Bits(5, i+1), Bits(5+golden&math.MaxUint64, i) }},
	} {
		same := 0
		for i := range uint64(n) {
			x, y := c.pair(i)
			for b := ^(x ^ y); b != 0; b &= b - 1 {
				same++
			}
		}
		if sd := math.Sqrt(64 * n / 4); math.Abs(float64(same)-32*n) > 6*sd {
			t.Errorf("%s: %d of %d bits agree", c.name, same, 64*n)
		}
	}
}
