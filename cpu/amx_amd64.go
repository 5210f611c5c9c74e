package cpu

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// HasAMX says whether this processor multiplies tiles of bfloat16 and the system lets this process use them.
var HasAMX = sync.OnceValue(func() bool { return cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && HasBF16() && allowTiles() })

// tilingHalves is the multiplication kernels for bfloat16: on tile registers where they are wanted and there, else on vectors; nil where
// the processor has neither.
func tilingHalves[T float](isa ISA, tiles bool) *kernels[T] {
	all := tilingPairs[T](isa)
	k, ok := any(all).(*kernels[float32])
	if !ok || k == nil || !tiles || !HasAMX() {
		return all
	}
	amx := &kernels[float32]{
		name: "amx", rows: 32, lanes: 16, transposes: k.transposes, copyB: k.copyB,
		tiles: []tileOf[float32]{{32, amxTile(32, amx32x32)}, {16, amxTile(16, amx32x16)}},
		pairs: &pairOf[float32]{narrow: k.pairs.narrow, pair: k.pairs.pair, halvesB: packHalves16, unit: 16, byRows: true},
	}
	return any(amx).(*kernels[T])
}

// amxTile is a tile of so many columns whose edges may lie outside of c: such a one is computed beside it.
func amxTile(width int, whole func(k int, a, b, c *float32, ldc, add int, next *float32, step int)) func(k int, a, b, c *float32, ldc, rows, cols, add int, next *float32, step int) {
	return func(k int, a, b, c *float32, ldc, rows, cols, add int, next *float32, step int) {
		if rows == 32 && cols == width {
			whole(k, a, b, c, ldc, add, next, step)
			return
		}
		var beside [32 * 32]float32
		if add != 0 { // sums begin with what c holds, as those of whole tiles do: the same bits
			copyEdge(beside[:], width, edge(c, ldc, rows, cols), ldc, rows, cols)
		}
		whole(k, a, b, &beside[0], width, add, next, step)
		copyEdge(edge(c, ldc, rows, cols), ldc, beside[:], width, rows, cols)
	}
}
