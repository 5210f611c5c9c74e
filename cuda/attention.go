package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

	"triax/cuda/driver"
	"triax/tensor"
)

// attend is the kernels' struct of that name, packed.
type attend []byte

// Tiles of the kernels: queries and keys of a block.
const (
	tileQueries = 16
	tileKeys    = 32
	// MaxHead is the largest size of a head.
	MaxHead = 256
)

// Heads is the largest size of a head that a device has room for.
func Heads(info driver.Info) int {
	n := MaxHead
	for n > 1 && sharedKeys(n) > info.SharedLimit {
		n--
	}
	return n
}

// attentionShared is the most shared memory that the kernels ask for: attention_keys with the largest head.
var attentionShared = sharedKeys(MaxHead)

// The kernels of flash.cu: tiles of 64 rows, of heads of up to 64 or 128 elements in bfloat16.
const tileFlash = 64

// flash is their suffix and shared memory for a head; "" where there are none for it.
func flash(float tensor.DType, dim int) (suffix string, shared int) {
	for _, n := range []int{64, 128} {
		if float == tensor.BF16 && dim <= n {
			return fmt.Sprint("_", n), 2 * 2 * tileFlash * (n + 8)
		}
	}
	return "", 0
}

func sharedForward(dim int) int {
	return 4 * (tileQueries*dim + tileKeys*(dim+1) + tileKeys*dim + tileQueries*tileKeys)
}
func sharedQueries(dim int) int {
	return 4 * (2*tileQueries*dim + 2*tileKeys*(dim+1) + tileQueries*tileKeys)
}
func sharedKeys(dim int) int {
	return 4 * (2*tileKeys*(dim+1) + 2*tileQueries*dim + 2*tileQueries*tileKeys)
}

// strips is the kernels' suffix for a head.
func strips(dim int) string {
	for _, n := range []int{32, 64, 128, MaxHead} {
		if dim <= n {
			return fmt.Sprint("_", n)
		}
	}
	panic(fmt.Sprintf("cuda: attention: no kernel for heads of %d; the largest is %d", dim, MaxHead))
}

// describe packs the struct.
func (d *Device) describe(at tensor.Attention) attend {
	words := binary.LittleEndian
	var b []byte
	keys := at.KeySegments
	if !at.Full {
		keys = at.Segments
	}
	for _, t := range []*tensor.Tensor{at.Segments, keys, at.SampleIndex} {
		var p driver.Pointer
		if t != nil {
			demand(t.DType == tensor.I32, "Attention", t)
			p = d.on("Attention", t)
		}
		b = words.AppendUint64(b, uint64(p))
	}
	start, _, limit := tensor.NewMask(at.Seed, at.Rate).Stream(0)
	b = words.AppendUint64(b, start)
	b = words.AppendUint64(b, limit)
	total := at.SeqTotal
	if total == 0 {
		total = at.Seq
	}
	for _, n := range []int{at.HeadsTotal, at.HeadOffset, total, at.QueryOffset, at.KeyOffset} {
		b = words.AppendUint64(b, uint64(n))
	}
	full := 0
	if at.Full {
		full = 1
	}
	for _, n := range []int{at.Seq, at.Heads, at.KVHeads, at.HeadDim, full} {
		b = words.AppendUint32(b, uint32(n))
	}
	b = words.AppendUint32(b, math.Float32bits(float32(1/math.Sqrt(float64(at.HeadDim)))))
	b = words.AppendUint32(b, math.Float32bits(float32(1/(1-at.Rate))))
	return words.AppendUint32(b, 0)
}

func (d *Device) fits(op string, at tensor.Attention, query, key, lse list) {
	tokens := at.Samples * at.Seq
	for _, t := range query {
		demand(t.Len() == tokens*at.Heads*at.HeadDim, op, query...)
	}
	for _, t := range key {
		demand(t.Len() == tokens*at.KVHeads*at.HeadDim, op, key...)
	}
	for _, t := range lse {
		demand(t.Len() == tokens*at.Heads, op, lse...)
	}
	demand(at.Rate == 0 || at.SampleIndex != nil && at.SampleIndex.Len() == at.Samples, op+": dropout without samples", query...)
	demand(at.Segments == nil || at.Segments.Len() == tokens, op, query...)
	demand(!at.Full || at.Segments == nil || at.KeySegments != nil && at.KeySegments.Len() == tokens, op+": key segments", query...)
}

// Attention goes through keys in tiles.
func (d *Device) Attention(out, lse, q, k, v *tensor.Tensor, at tensor.Attention) {
	d.fits("Attention", at, list{q, out}, list{k, v}, list{lse})
	if suffix, shared := flash(q.DType, at.HeadDim); suffix != "" {
		grid := driver.Dim{X: uint32(parts(at.Seq, tileFlash)), Y: uint32(at.Heads), Z: uint32(at.Samples)}
		d.launch("flash"+suffix, q.DType, shape{grid, dim(128), shared}, out, lse, q, k, v, d.describe(at))
		return
	}
	grid := driver.Dim{X: uint32(parts(at.Seq, tileQueries)), Y: uint32(at.Heads), Z: uint32(at.Samples)}
	d.launch("attention"+strips(at.HeadDim), q.DType, shape{grid, dim(128), sharedForward(at.HeadDim)}, out, lse, q, k, v, d.describe(at))
}

// AttentionGrad makes the weights anew from lse, once by tiles of queries and once by tiles of keys.
func (d *Device) AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v *tensor.Tensor, at tensor.Attention) {
	d.fits("AttentionGrad", at, list{q, dq, dout, out}, list{k, v, dk, dv}, list{lse})
	delta := d.scratch(tensor.F32, lse.Len())
	defer delta.Release()
	a, suffix := d.describe(at), strips(at.HeadDim)
	d.warps("attention_delta", q.DType, lse.Len(), delta, dout, out, lse.Len(), at.Heads, at.Seq, at.HeadDim)
	if suffix, shared := flash(q.DType, at.HeadDim); suffix != "" {
		grid := driver.Dim{X: uint32(parts(at.Seq, tileFlash)), Y: uint32(at.Heads), Z: uint32(at.Samples)}
		d.launch("flash_queries"+suffix, q.DType, shape{grid, dim(128), shared}, dq, dout, lse, delta, q, k, v, a)
		grid.Y = uint32(at.KVHeads)
		d.launch("flash_keys"+suffix, q.DType, shape{grid, dim(128), shared}, dk, dv, dout, lse, delta, q, k, v, a)
		return
	}
	grid := driver.Dim{X: uint32(parts(at.Seq, tileQueries)), Y: uint32(at.Heads), Z: uint32(at.Samples)}
	d.launch("attention_queries"+suffix, q.DType, shape{grid, dim(128), sharedQueries(at.HeadDim)}, dq, dout, lse, delta, q, k, v, a)
	grid.X, grid.Y = uint32(parts(at.Seq, tileKeys)), uint32(at.KVHeads)
	d.launch("attention_keys"+suffix, q.DType, shape{grid, dim(128), sharedKeys(at.HeadDim)}, dk, dv, dout, lse, delta, q, k, v, a)
}

// AttentionMerge joins the results over two sets of keys.
func (d *Device) AttentionMerge(out, lse, part, partLSE *tensor.Tensor, at tensor.Attention) {
	d.fits("AttentionMerge", at, list{out, part}, nil, list{lse, partLSE})
	d.warps("attention_merge", out.DType, lse.Len(), out, lse, part, partLSE, lse.Len(), at.Heads, at.Seq, at.HeadDim)
}
