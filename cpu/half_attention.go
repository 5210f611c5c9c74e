package cpu

import "triax/tensor"

// halfAttention widens the heads of some samples at a time, attends, and rounds.
type halfAttention struct {
	q, k, v, out, dout, dq, dk, dv []float32
	wide                           wideTask
}

// headFloats is about how many elements of queries are widened at a time.
const headFloats = 1 << 18

func (d *half) Attention(out, lse, q, k, v *tensor.Tensor, at tensor.Attention) {
	t := d.attends("Attention", at, out, lse, q, k, v)
	t.backward = false
	h := &d.heads
	d.bySamples(t, lse, at, func(qs, ks span2) {
		t.q, t.k, t.v = d.load(&h.q, q, qs), d.load(&h.k, k, ks), d.load(&h.v, v, ks)
		t.out = room(&h.out, qs)
	}, func(qs, _ span2) { d.store(out, h.out, qs) })
}

func (d *half) AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v *tensor.Tensor, at tensor.Attention) {
	t := d.attends("AttentionGrad", at, out, lse, q, k, v)
	demand(dq.Len() == q.Len() && dout.Len() == q.Len() && dk.Len() == k.Len() && dv.Len() == k.Len(),
		"AttentionGrad", dq, dk, dv, dout, out, lse, q, k, v)
	t.backward = true
	h := &d.heads
	d.bySamples(t, lse, at, func(qs, ks span2) {
		t.q, t.k, t.v = d.load(&h.q, q, qs), d.load(&h.k, k, ks), d.load(&h.v, v, ks)
		t.out, t.dout = d.load(&h.out, out, qs), d.load(&h.dout, dout, qs)
		t.dq, t.dk, t.dv = room(&h.dq, qs), room(&h.dk, ks), room(&h.dv, ks)
	}, func(qs, ks span2) {
		d.store(dq, h.dq, qs)
		d.store(dk, h.dk, ks)
		d.store(dv, h.dv, ks)
	})
}

// span2 is elements lo up to hi.
type span2 struct{ lo, hi int }

func room(x *[]float32, s span2) []float32 {
	grow(x, s.hi-s.lo)
	return *x
}

// bySamples attends to some samples at a time. open gives the task its operands, close takes its results.
func (d *half) bySamples(t *attentionTask[float32], lse *tensor.Tensor, at tensor.Attention, open, close func(qs, ks span2)) {
	segments, keys, index := t.segments, t.keySegments, t.samples
	q, k, l := at.Seq*at.Heads*at.HeadDim, at.Seq*at.KVHeads*at.HeadDim, at.Seq*at.Heads
	group := max(1, headFloats/max(1, q))
	for s := 0; s < at.Samples; s += group {
		end := min(at.Samples, s+group)
		t.at.Samples = end - s
		t.lse = lse.F32()[s*l : end*l]
		if segments != nil {
			t.segments, t.keySegments = segments[s*at.Seq:end*at.Seq], keys[s*at.Seq:end*at.Seq]
		}
		if index != nil {
			t.samples = index[s:end]
		}
		qs, ks := span2{s * q, end * q}, span2{s * k, end * k}
		open(qs, ks)
		d.attend(t)
		close(qs, ks)
	}
}

func (d *half) load(x *[]float32, from *tensor.Tensor, s span2) []float32 {
	grow(x, s.hi-s.lo)
	d.heads.wide = wideTask{d.rows, *x, bits(from)[s.lo:s.hi], true}
	d.team.split(len(*x), 256, len(*x), &d.heads.wide)
	return *x
}

func (d *half) store(to *tensor.Tensor, x []float32, s span2) {
	d.heads.wide = wideTask{d.rows, x, bits(to)[s.lo:s.hi], false}
	d.team.split(len(x), 256, len(x), &d.heads.wide)
}

// AttentionMerge rounds the joint result once.
func (d *half) AttentionMerge(out, lse, part, partLSE *tensor.Tensor, at tensor.Attention) {
	n := at.Heads * at.HeadDim
	demand(out.Len() == at.Samples*at.Seq*n && part.Len() == out.Len() && lse.Len() == at.Samples*at.Seq*at.Heads && partLSE.Len() == lse.Len(),
		"AttentionMerge", out, lse, part, partLSE)
	all := span2{0, out.Len()}
	t := &d.ops.merge
	t.at, t.lse, t.partLSE = at, lse.F32(), partLSE.F32()
	t.out, t.part = d.load(&d.heads.out, out, all), d.load(&d.heads.q, part, all)
	d.team.split(at.Samples*at.Seq, 1, at.Samples*at.Seq*at.Heads*(at.HeadDim+32), t)
	d.store(out, d.heads.out, all)
}
