package devicetest

import "triax/tensor"

// attentionMerges: a causal half and a full half merged are the whole; and the halves' gradients, taken with the whole's out
// and lse, are the whole's.
func attentionMerges(b *bench) {
	for _, drop := range []bool{false, true} {
		at := tensor.Attention{Samples: 1, Seq: 12, Heads: 4, KVHeads: 2, HeadDim: 5}
		ref := b.prepare(at, true, drop)
		q, k, v, dout, out, lse := b.attend(ref)
		dq, dk, dv := b.blank(12, 20), b.blank(12, 10), b.blank(12, 10)
		b.dev.AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v, ref.at)
		// The second half's queries look at their own half, and at all of the first.
		own, first := ref.at, ref.at
		own.Seq, own.SeqTotal, own.QueryOffset, own.KeyOffset = 6, 12, 6, 6
		own.Segments = ref.at.Segments.Flat(6, 12)
		first.Seq, first.SeqTotal, first.QueryOffset, first.KeyOffset, first.Full = 6, 12, 6, 0, true
		first.Segments, first.KeySegments = own.Segments, ref.at.Segments.Flat(0, 6)
		k0, v0, k1, v1, q1 := k.Rows(0, 6), v.Rows(0, 6), k.Rows(6, 12), v.Rows(6, 12), q.Rows(6, 12)
		o, l, po, pl := b.blank(6, 20), b.blankSum(1, 4, 6), b.blank(6, 20), b.blankSum(1, 4, 6)
		b.dev.Attention(o, l, q1, k1, v1, own)
		b.dev.Attention(po, pl, q1, k0, v0, first)
		b.dev.AttentionMerge(o, l, po, pl, own)
		b.close("merged out", b.read(o), b.read(out)[120:], 10*b.tol, 1)
		a1, c1, d1 := b.blank(6, 20), b.blank(6, 10), b.blank(6, 10)
		b.dev.AttentionGrad(a1, c1, d1, dout.Rows(6, 12), o, l, q1, k1, v1, own)
		a0, c0, d0 := b.blank(6, 20), b.blank(6, 10), b.blank(6, 10)
		b.dev.AttentionGrad(a0, c0, d0, dout.Rows(6, 12), o, l, q1, k0, v0, first)
		b.dev.Add(a1, a0)
		b.close("share of dq", b.read(a1), b.read(dq)[120:], 10*b.tol, 1)
		b.close("own dk", b.read(c1), b.read(dk)[60:], 10*b.tol, 1)
		b.close("own dv", b.read(d1), b.read(dv)[60:], 10*b.tol, 1)
		b.free()
	}
}
