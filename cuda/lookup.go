package cuda

import (
	"math/bits"

	"triax/cuda/driver"
	"triax/tensor"
)

// Embed looks rows up.
func (d *Device) Embed(y, table, ids *tensor.Tensor, lo int) {
	tokens, cols := ids.Len(), colsOf(table)
	demand(y.Len() == tokens*cols, "Embed", y, table, ids)
	d.flat("embed", y.DType, y.Len(), y, table, ids, tokens, cols, lo, rowsOf(table))
}

// sortRun is how many tokens a thread of the sort owns (RUN in embed.cu), sortBits a digit.
const sortRun, sortBits = 64, 4

// EmbedGrad sorts tokens by row, then adds each row's up in the tokens' order.
func (d *Device) EmbedGrad(dtable, dy, ids *tensor.Tensor, lo int) {
	tokens, rows, cols := ids.Len(), rowsOf(dtable), colsOf(dtable)
	demand(dy.Len() == tokens*cols, "EmbedGrad", dtable, dy, ids)
	if dy.Len() == 0 {
		return
	}
	room := d.scratch(tensor.I32, 4*tokens)
	defer room.Release()
	var four [4]*tensor.Tensor
	for i := range four {
		four[i] = room.Flat(i*tokens, (i+1)*tokens)
	}
	key, order, key2, order2 := four[0], four[1], four[2], four[3]
	d.flat("embed_keys", dy.DType, tokens, key, order, ids, tokens, lo, rows)
	runs := parts(tokens, sortRun)
	count := d.scratch(tensor.I32, runs<<sortBits)
	defer count.Release()
	over := shape{grid: dim(parts(runs, 128)), block: dim(128)}
	for shift := 0; shift < bits.Len(uint(rows)); shift += sortBits {
		d.launch("sort_count", dy.DType, over, count, key, tokens, runs, shift)
		d.launch("sort_scan", dy.DType, shape{grid: dim(1), block: dim(256)}, count, runs<<sortBits)
		d.launch("sort_place", dy.DType, over, key2, order2, count, key, order, tokens, runs, shift)
		key, key2, order, order2 = key2, key, order2, order
	}
	name := "embed_grad"
	if dtable.DType != dy.DType {
		name = "embed_grad_sum"
	}
	grid := driver.Dim{X: uint32(tokens), Y: uint32(min(parts(cols, 128), 64)), Z: 1}
	d.launch(name, dy.DType, shape{grid: grid, block: dim(128)}, dtable, dy, key, order, tokens, cols, rows)
}
