package nn

import (
	"math"

	"triax/tensor"
)

// Random values here are functions of where they are used, never of what was drawn before: the starting weights and
// dropout masks of any slice can be made alone, and are the same on every mesh.

// hash turns a name into 64 bits (FNV-1a).
func hash(name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return h
}

// site names a stream of dropout masks: of a run, a step and a place in the model.
func site(ctx *Ctx, place uint64) uint64 {
	return tensor.Bits(tensor.Bits(ctx.Seed, uint64(ctx.Step)), place)
}

// normals fills dst with elements first, first+1, ... of a stream of standard normal values. Elements 2k and 2k+1 are the two
// values that Box and Muller (1958) make of one pair of uniform values.
func normals(dst []float64, stream uint64, first int) {
	for i := 0; i < len(dst); {
		at := first + i
		k := uint64(at / 2)
		// 53 bits each; u is in (0, 1], so that its logarithm is finite.
		u := (float64(tensor.Bits(stream, 2*k)>>11) + 1) / (1 << 53)
		v := float64(tensor.Bits(stream, 2*k+1)>>11) / (1 << 53)
		sin, cos := math.Sincos(2 * math.Pi * v)
		r := math.Sqrt(-2 * math.Log(u))
		if at%2 == 0 {
			dst[i] = r * cos
			if i++; i == len(dst) {
				return
			}
		}
		dst[i] = r * sin
		i++
	}
}
