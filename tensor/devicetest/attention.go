package devicetest

import (
	"fmt"
	"math"

	"triax/tensor"
)

func attentions(b *bench) {
	shapes := []tensor.Attention{
		{Samples: 1, Seq: 1, Heads: 1, KVHeads: 1, HeadDim: 1},
		{Samples: 2, Seq: 3, Heads: 1, KVHeads: 1, HeadDim: 2},
		{Samples: 3, Seq: 7, Heads: 3, KVHeads: 3, HeadDim: 5},
		{Samples: 1, Seq: 17, Heads: 4, KVHeads: 2, HeadDim: 16},
		{Samples: 2, Seq: 65, Heads: 6, KVHeads: 2, HeadDim: 24},
		{Samples: 1, Seq: 130, Heads: 3, KVHeads: 1, HeadDim: 64},
		{Samples: 2, Seq: 33, Heads: 2, KVHeads: 2, HeadDim: 65},
		{Samples: 1, Seq: 200, Heads: 2, KVHeads: 2, HeadDim: 32},
		{Samples: 1, Seq: 35, Heads: 2, KVHeads: 1, HeadDim: 131},
	}
	for _, at := range shapes {
		for variant := range 8 {
			at.Full = variant&4 != 0
			b.attention(at, variant&1 != 0, variant&2 != 0)
			b.free()
		}
	}
}

// prepare fills in segments (documents of random lengths) and dropout.
func (b *bench) prepare(at tensor.Attention, packed, drop bool) *attend {
	ref := &attend{at: at}
	if packed {
		for range at.Samples {
			number := int32(b.rng.IntN(3))
			for range at.Seq {
				if b.rng.IntN(9) == 0 {
					number++
				}
				ref.segments = append(ref.segments, number)
			}
		}
		ref.at.Segments = b.ints(ref.segments)
		if at.Full {
			for _, s := range ref.segments {
				ref.keySegments = append(ref.keySegments, s-int32(b.rng.IntN(2)))
			}
			ref.at.KeySegments = b.ints(ref.keySegments)
		}
	}
	if drop {
		for i := range at.Samples {
			ref.samples = append(ref.samples, int32(7*i+3))
		}
		ref.at.Rate, ref.at.Seed = 0.25, b.rng.Uint64()
		ref.at.HeadsTotal, ref.at.HeadOffset = at.Heads+5, 2
		ref.at.SampleIndex = b.ints(ref.samples)
		if at.Full {
			ref.at.SeqTotal, ref.at.QueryOffset, ref.at.KeyOffset = 3*at.Seq+1, 2*at.Seq, at.Seq
		}
	}
	return ref
}

func (b *bench) attention(at tensor.Attention, packed, drop bool) {
	ref := b.prepare(at, packed, drop)
	what := fmt.Sprintf("attention %dx%d heads %d/%d of %d, packed %v, dropout %v, full %v: ",
		at.Samples, at.Seq, at.Heads, at.KVHeads, at.HeadDim, packed, drop, at.Full)
	T, H, K, hd := at.Samples*at.Seq, at.Heads, at.KVHeads, at.HeadDim
	q, k, v, dout, out, lse := b.attend(ref)
	outV, lseV := ref.forward()
	b.want(what+"out", out, outV)
	b.want(what+"lse", lse, lseV)
	dq, dk, dv := b.blank(T, H*hd), b.blank(T, K*hd), b.blank(T, K*hd)
	b.dev.AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v, ref.at)
	dqV, dkV, dvV := ref.backward(b.read(dout))
	// dS is a difference of terms of the size of dout v, and may be zero but for rounding.
	b.close(what+"dq", b.read(dq), dqV, 3*b.tol, 1)
	b.close(what+"dk", b.read(dk), dkV, 3*b.tol, 1)
	b.want(what+"dv", dv, dvV)
}

// attend runs the forward on random inputs and notes them in the reference.
func (b *bench) attend(ref *attend) (q, k, v, dout, out, lse *tensor.Tensor) {
	at := ref.at
	T, H, K, hd := at.Samples*at.Seq, at.Heads, at.KVHeads, at.HeadDim
	q, ref.q = b.random(1, T, H*hd)
	k, ref.k = b.random(1, T, K*hd)
	v, ref.v = b.random(1, T, K*hd)
	dout, _ = b.random(1, T, H*hd)
	out, lse = b.blank(T, H*hd), b.blankSum(at.Samples, H, at.Seq)
	b.dev.Attention(out, lse, q, k, v, at)
	return q, k, v, dout, out, lse
}

func attentionDifferences(b *bench) {
	for variant := range 8 {
		ref := b.prepare(tensor.Attention{Samples: 2, Seq: 5, Heads: 4, KVHeads: 2, HeadDim: 3, Full: variant&4 != 0}, variant&1 != 0, variant&2 != 0)
		q, k, v, dout, out, lse := b.attend(ref)
		dq, dk, dv := b.blank(10, 12), b.blank(10, 6), b.blank(10, 6)
		b.dev.AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v, ref.at)
		dy := b.read(dout)
		for _, c := range []struct {
			name       string
			dx         *tensor.Tensor
			x          *[]float64
			tol, floor float64 // of dq and dk as in attention: differences that may be zero but for the rounding of out
		}{{"dq", dq, &ref.q, 3 * b.tol, 1}, {"dk", dk, &ref.k, 3 * b.tol, 1}, {"dv", dv, &ref.v, b.tol, 0.1}} {
			x := *c.x
			b.slopesWithin("attention "+c.name, c.dx, func(at []float64) []float64 {
				*c.x = at
				y, _ := ref.forward()
				return y
			}, x, dy, c.tol, c.floor)
			*c.x = x
		}
		b.free()
	}
}

// attentionRange: scores in the thousands neither overflow nor lose the largest key.
func attentionRange(b *bench) {
	ref := &attend{at: tensor.Attention{Samples: 1, Seq: 40, Heads: 1, KVHeads: 1, HeadDim: 8}}
	var q, k, v *tensor.Tensor
	q, ref.q = b.random(60, 40, 8)
	k, ref.k = b.random(60, 40, 8)
	v, ref.v = b.random(1, 40, 8)
	out, lse := b.blank(40, 8), b.blankSum(1, 1, 40)
	b.dev.Attention(out, lse, q, k, v, ref.at)
	_, lseV := ref.forward()
	b.want("lse of large scores", lse, lseV)
	for i, x := range b.read(out) {
		if !(math.Abs(x) < 10) {
			b.Fatalf("out %d is %v", i, x)
		}
	}
	dout, _ := b.random(1, 40, 8)
	dq, dk, dv := b.blank(40, 8), b.blank(40, 8), b.blank(40, 8)
	b.dev.AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v, ref.at)
	for _, g := range []*tensor.Tensor{dq, dk, dv} {
		for i, x := range b.read(g) {
			if x != x || math.IsInf(x, 0) {
				b.Fatalf("gradient %d is %v", i, x)
			}
		}
	}
}
