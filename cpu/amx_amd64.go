package cpu

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// HasAMX says whether this processor multiplies tiles of bfloat16 and the system lets this process use them.
var HasAMX = sync.OnceValue(func() bool { return cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && HasBF16() && allowTiles() })

// tilingHalves is the multiplication kernels for operands that are bfloat16 in memory: on tile registers where there are any, else on
// vectors; nil where the processor has neither.
func tilingHalves(isa ISA) *kernels[float32] {
	k := tilingPairs[float32](isa)
	if k == nil || !HasAMX() {
		return k
	}
	return &kernels[float32]{
		name: "amx", rows: 32, lanes: 16, transposes: k.transposes,
		tiles: []tileOf[float32]{{32, amxTile(32, amx32x32)}, {16, amxTile(16, amx32x16)}},
		pairs: &pairOf[float32]{narrow: k.pairs.narrow, pair: k.pairs.pair, halvesB: packHalves16, unit: 16, byRows: true},
	}
}

// amxTile is a tile of so many columns whose edges may lie outside of c: such a one is computed beside it.
func amxTile(width int, whole func(k int, a, b, c *float32, ldc, add int, next *float32, step int)) func(k int, a, b, c *float32, ldc, rows, cols, add int, next *float32, step int) {
	return func(k int, a, b, c *float32, ldc, rows, cols, add int, next *float32, step int) {
		if rows == 32 && cols == width {
			whole(k, a, b, c, ldc, add, next, step)
			return
		}
		var beside [32 * 32]float32
		whole(k, a, b, &beside[0], width, 0, next, step)
		putEdge(c, ldc, beside[:], width, rows, cols, add)
	}
}
