package main

import (
	"context"
	"fmt"

	"triax/cuda"
	"triax/tensor"
)

// part is one operation, with the bytes that it must move or the operations that it must do.
type part struct {
	name  string
	bytes int64
	flops float64
	f     func()
}

// kernels are timed at the shapes of a GPT-2, in bfloat16: memory-bound ones as a share of the copy, attention as one of the product.
func kernels(ctx context.Context, b *bench) error {
	d, err := b.m.Device(cuda.Options{Float: tensor.BF16})
	if err != nil {
		return err
	}
	defer d.Close()
	for _, group := range []func(*cuda.Device, sizes) []part{rowParts, lossParts, updateParts, attentionParts} {
		for _, p := range group(d, b.size) {
			took, err := b.timed(ctx, d, p.f)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			switch {
			case p.flops > 0:
				b.say("%-28s %8.1f us  %7.1f TFLOP/s  %3.0f%% of the product's", p.name, 1e6*took, p.flops/took/1e12, 100*p.flops/took/b.rate.gemm)
			default:
				b.say("%-28s %8.1f us  %7.0f GB/s     %3.0f%% of the copy's", p.name, 1e6*took, float64(p.bytes)/took/1e9, 100*float64(p.bytes)/took/b.rate.copied)
			}
		}
	}
	return nil
}

// moved is the bytes of tensors, each read or written once.
func moved(ts ...*tensor.Tensor) (n int64) {
	for _, t := range ts {
		n += t.Bytes()
	}
	return n
}

// counted is row numbers, or ids below a limit.
func counted(d *cuda.Device, n, below int) *tensor.Tensor {
	t, values := d.Heap().New(tensor.Inputs, tensor.I32, n), make([]int32, n)
	for i := range values {
		values[i] = int32(i * 7919 % below)
	}
	d.UploadI32(t, values)
	return t
}

func rowParts(d *cuda.Device, s sizes) []part {
	T, D, F := s.rows, s.width, 4*s.width
	x, y, dy, wide := filled(d, tensor.BF16, T, D), filled(d, tensor.BF16, T, D), filled(d, tensor.BF16, T, D), filled(d, tensor.BF16, T, F)
	w, bias, up, dup := filled(d, tensor.BF16, D), filled(d, tensor.BF16, D), filled(d, tensor.BF16, T, F), filled(d, tensor.BF16, T, F)
	mean, rstd, dw, db := filled(d, tensor.F32, T), filled(d, tensor.F32, T), filled(d, tensor.F32, D), filled(d, tensor.F32, D)
	wideBias, table, dtable := filled(d, tensor.F32, F), filled(d, tensor.BF16, s.vocab, D), filled(d, tensor.F32, s.vocab, D)
	ids, rows := counted(d, T, s.vocab), counted(d, T, T)
	freq := make([]float64, D/s.heads/2)
	for i := range freq {
		freq[i] = 1 / float64(i+1)
	}
	return []part{
		{"add", moved(y, y, x), 0, func() { d.Add(y, x) }},
		{"add bias", moved(y, y), 0, func() { d.AddBias(y, bias) }},
		{"bias gradient", moved(wide), 0, func() { d.BiasGrad(wideBias, wide) }},
		{"gelu", moved(wide, up), 0, func() { d.Gelu(up, wide) }},
		{"gelu gradient", moved(wide, up, dup), 0, func() { d.GeluGrad(dup, wide, up) }},
		{"swiglu", moved(wide, up, dup), 0, func() { d.SwiGLU(dup, wide, up) }},
		{"dropout", moved(x, y), 0, func() { d.Dropout(y, x, rows, 1, D, 0, 0.1) }},
		{"rope", moved(x, x), 0, func() { d.Rope(x, rows, s.heads, freq, false) }},
		{"layer norm", moved(x, y), 0, func() { d.LayerNorm(y, mean, rstd, x, w, bias, 1e-5) }},
		{"layer norm, input gradient", moved(x, y, dy), 0, func() { d.LayerNormInput(y, dy, x, w, mean, rstd) }},
		{"layer norm, weight gradient", moved(x, dy), 0, func() { d.LayerNormWeight(dw, db, dy, x, mean, rstd) }},
		{"rms norm", moved(x, y), 0, func() { d.RMSNorm(y, rstd, x, w, 1e-5) }},
		{"embedding", moved(y, y), 0, func() { d.Embed(y, table, ids, 0) }},
		{"embedding gradient", moved(dy) + 8*int64(T)*int64(D), 0, func() { d.EmbedGrad(dtable, dy, ids, 0) }},
	}
}

func lossParts(d *cuda.Device, s sizes) []part {
	logits := filled(d, tensor.BF16, s.logits, s.vocab)
	top, sum, target, targets := filled(d, tensor.F32, s.logits), filled(d, tensor.F32, s.logits), filled(d, tensor.F32, s.logits), counted(d, s.logits, s.vocab)
	d.RowMax(top, logits, s.vocab)
	d.RowSum(sum, target, logits, top, targets, 0, s.vocab)
	return []part{
		{"row maximum", moved(logits), 0, func() { d.RowMax(top, logits, s.vocab) }},
		{"row sum", moved(logits), 0, func() { d.RowSum(sum, target, logits, top, targets, 0, s.vocab) }},
		{"loss gradient", moved(logits, logits), 0, func() { d.LossGrad(logits, top, sum, targets, 0, s.vocab, 1e-3) }},
	}
}

func updateParts(d *cuda.Device, s sizes) []part {
	w, g, m, v := filled(d, tensor.F32, s.states), filled(d, tensor.F32, s.states), filled(d, tensor.F32, s.states), filled(d, tensor.F32, s.states)
	d.Zero(v) // second moments are no negative numbers
	half := filled(d, tensor.BF16, s.states)
	u := tensor.AdamW{Rate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Step: 10, Scale: 1}
	return []part{
		{"adamw", moved(w, w, g, m, m, v, v), 0, func() { d.AdamW(w, g, m, v, u) }},
		{"sum of squares", moved(g), 0, func() { d.SumSquares(g) }},
		{"rounding to bfloat16", moved(w, half), 0, func() { d.Copy(half, w) }},
	}
}

// attentionParts: a causal forward is two products of [S hd] and [hd S] for each head, half of each; a backward is five (Dao 2023, §4.1).
func attentionParts(d *cuda.Device, s sizes) (parts []part) {
	seq := min(1024, s.rows)
	for _, dim := range []int{64, 128} {
		heads := max(1, s.width/dim)
		at := tensor.Attention{Samples: s.rows / seq, Seq: seq, Heads: heads, KVHeads: heads, HeadDim: dim}
		make := func() *tensor.Tensor { return filled(d, tensor.BF16, s.rows, heads*dim) }
		q, k, v, out, dout, dq, dk, dv := make(), make(), make(), make(), make(), make(), make(), make()
		lse := filled(d, tensor.F32, at.Samples, heads, seq)
		product := float64(at.Samples) * float64(heads) * float64(seq) * float64(seq) * float64(dim) // 2 of them, half
		parts = append(parts,
			part{fmt.Sprintf("attention, heads of %d", dim), 0, 2 * product, func() { d.Attention(out, lse, q, k, v, at) }},
			part{fmt.Sprintf("its gradient, heads of %d", dim), 0, 5 * product, func() { d.AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v, at) }})
	}
	return parts
}
