package cpu

import (
	"math"

	"triax/tensor"
)

func (d *core[T]) Attention(out, lse, q, k, v *tensor.Tensor, at tensor.Attention) {
	t := d.attends("Attention", at, out, lse, q, k, v)
	t.backward = false
	t.set(out, lse, q, k, v)
	d.attend(t)
}

// set is the operands that forward and backward have.
func (t *attentionTask[T]) set(out, lse, q, k, v *tensor.Tensor) {
	t.out, t.lse = tensor.Slice[T](out), tensor.Slice[T](lse)
	t.q, t.k, t.v = tensor.Slice[T](q), tensor.Slice[T](k), tensor.Slice[T](v)
}

// attend runs a task whose operands are set.
func (d *core[T]) attend(t *attentionTask[T]) {
	if d.tile != nil {
		d.tiledAttention(t)
		return
	}
	t.scratch(d.opts.Threads)
	d.team.split(t.at.Samples*t.at.KVHeads, 1, t.work(), t)
}

// AttentionGrad cuts over samples and key/value heads: the query heads that share one add into its
// dk and dv in order.
func (d *core[T]) AttentionGrad(dq, dk, dv, dout, out, lse, q, k, v *tensor.Tensor, at tensor.Attention) {
	t := d.attends("AttentionGrad", at, out, lse, q, k, v)
	t.set(out, lse, q, k, v)
	demand(dq.Len() == q.Len() && dout.Len() == q.Len() && dk.Len() == k.Len() && dv.Len() == k.Len(),
		"AttentionGrad", dq, dk, dv, dout, out, lse, q, k, v)
	t.backward = true
	t.dq, t.dk, t.dv, t.dout = tensor.Slice[T](dq), tensor.Slice[T](dk), tensor.Slice[T](dv), tensor.Slice[T](dout)
	d.attend(t)
}

// attends checks a call and makes its task; the operands are still to be set.
func (d *core[T]) attends(op string, at tensor.Attention, out, lse, q, k, v *tensor.Tensor) *attentionTask[T] {
	tokens := at.Samples * at.Seq
	demand(at.KVHeads > 0 && at.Heads%at.KVHeads == 0 &&
		q.Len() == tokens*at.Heads*at.HeadDim && out.Len() == q.Len() &&
		k.Len() == tokens*at.KVHeads*at.HeadDim && v.Len() == k.Len() && lse.Len() == tokens*at.Heads,
		op, out, lse, q, k, v)
	t := &d.ops.attention
	t.at, t.mask, t.scale = at, tensor.NewMask(at.Seed, at.Rate), 1/math.Sqrt(float64(at.HeadDim))
	t.segments, t.keySegments, t.samples = nil, nil, nil
	if at.Segments != nil {
		demand(at.Segments.Len() == tokens, op, at.Segments)
		t.segments = at.Segments.I32()
		t.keySegments = t.segments
		if at.Full {
			if at.KeySegments == nil || at.KeySegments.Len() != tokens {
				wrongShapes(op+": KeySegments of every key", at.Segments)
			}
			t.keySegments = at.KeySegments.I32()
		}
	}
	if t.at.SeqTotal == 0 {
		t.at.SeqTotal = at.Seq
	}
	if at.Rate > 0 {
		if at.SampleIndex == nil || at.SampleIndex.Len() != at.Samples {
			wrongShapes(op+": dropout needs SampleIndex", q)
		}
		t.samples = at.SampleIndex.I32()
	}
	return t
}

// attentionTask works query by query: one row of scores is all the memory it needs.
type attentionTask[T float] struct {
	at                        tensor.Attention
	mask                      tensor.Mask
	scale                     float64
	backward                  bool
	out, lse, q, k, v         []T
	dq, dk, dv, dout          []T
	segments, keySegments     []int32
	samples                   []int32
	scores, slopes, accu, dkv [][]float64 // by worker
}

func (t *attentionTask[T]) scratch(threads int) {
	if len(t.scores) == threads && len(t.scores[0]) >= t.at.Seq && len(t.accu[0]) >= t.at.HeadDim && len(t.dkv[0]) >= 2*t.at.Seq*t.at.HeadDim {
		return
	}
	t.scores, t.slopes, t.accu, t.dkv = nil, nil, nil, nil
	for range threads {
		t.scores = append(t.scores, make([]float64, t.at.Seq))
		t.slopes = append(t.slopes, make([]float64, t.at.Seq))
		t.accu = append(t.accu, make([]float64, t.at.HeadDim))
		t.dkv = append(t.dkv, make([]float64, 2*t.at.Seq*t.at.HeadDim))
	}
}

func (t *attentionTask[T]) work() int {
	return t.at.Samples * t.at.Seq * t.at.Seq * t.at.Heads * (t.at.HeadDim/8 + 1)
}

func (t *attentionTask[T]) run(w, lo, hi int) {
	for i := lo; i < hi; i++ {
		sample, kv := i/t.at.KVHeads, i%t.at.KVHeads
		group := t.at.Heads / t.at.KVHeads
		if t.backward {
			t.gradients(w, sample, kv, group)
			continue
		}
		for h := kv * group; h < (kv+1)*group; h++ {
			for s := range t.at.Seq {
				t.forward(w, sample, h, kv, s)
			}
		}
	}
}

// query and key are one head's vector of one token.
func (t *attentionTask[T]) query(x []T, sample, head, s int) []T {
	return x[((sample*t.at.Seq+s)*t.at.Heads+head)*t.at.HeadDim:][:t.at.HeadDim]
}

func (t *attentionTask[T]) key(x []T, sample, head, s int) []T {
	return x[((sample*t.at.Seq+s)*t.at.KVHeads+head)*t.at.HeadDim:][:t.at.HeadDim]
}

// keys is how many keys query s may look at: those up to itself, or all.
func (t *attentionTask[T]) keys(s int) int {
	if t.at.Full {
		return t.at.Seq
	}
	return s + 1
}

// sees says whether query s may look at key j < keys(s).
func (t *attentionTask[T]) sees(sample, s, j int) bool {
	return t.segments == nil || t.segments[sample*t.at.Seq+s] == t.keySegments[sample*t.at.Seq+j]
}

// keep is the factor that dropout puts on the weights of query s: 0 or 1/(1-rate), from key index 0.
func (t *attentionTask[T]) dropBase(sample, head, s int) uint64 {
	seq := uint64(t.at.SeqTotal)
	row := uint64(int(t.samples[sample])*t.at.HeadsTotal + t.at.HeadOffset + head)
	return (row*seq+uint64(s+t.at.QueryOffset))*seq + uint64(t.at.KeyOffset)
}

// weights leaves exp(score - lse) of query s in p: the row of the softmax. With fresh it also
// computes lse; else lse is that of the forward.
func (t *attentionTask[T]) weights(p []float64, sample, head, kv, s int, fresh bool) {
	q := t.query(t.q, sample, head, s)
	top := math.Inf(-1)
	keys := t.keys(s)
	for j := range keys {
		p[j] = math.Inf(-1)
		if t.sees(sample, s, j) {
			p[j] = t.scale * dot(q, t.key(t.k, sample, kv, j))
			top = max(top, p[j])
		}
	}
	at := (sample*t.at.Heads+head)*t.at.Seq + s
	lse := float64(t.lse[at])
	if fresh {
		var sum float64
		if !math.IsInf(top, -1) {
			for _, z := range p[:keys] {
				sum += math.Exp(z - top)
			}
		}
		lse = top + math.Log(sum)
		t.lse[at] = T(lse)
	}
	for j, z := range p[:keys] {
		if p[j] = math.Exp(z - lse); math.IsInf(z, -1) {
			p[j] = 0 // also where lse is -Inf
		}
	}
}

func (t *attentionTask[T]) forward(w, sample, head, kv, s int) {
	p, acc := t.scores[w], t.accu[w][:t.at.HeadDim]
	t.weights(p, sample, head, kv, s, true)
	t.drop(p, sample, head, s)
	clear(acc)
	for j, x := range p[:t.keys(s)] {
		axpy(acc, x, t.key(t.v, sample, kv, j))
	}
	for i, x := range acc {
		t.query(t.out, sample, head, s)[i] = T(x)
	}
}

// drop applies dropout to a row of weights (or of their gradients).
func (t *attentionTask[T]) drop(p []float64, sample, head, s int) {
	if t.at.Rate == 0 {
		return
	}
	base, scale := t.dropBase(sample, head, s), 1/(1-t.at.Rate)
	for j := range p[:t.keys(s)] {
		if t.mask.Keeps(base + uint64(j)) {
			p[j] *= scale
		} else {
			p[j] = 0
		}
	}
}

// gradients of one key/value head: with P the softmax and D the row's dout.out,
// dS = P (dP - D), dq = scale dS k, dk = scale dS^T q, dv = P^T dout (Dao et al. 2022, App. B.2).
func (t *attentionTask[T]) gradients(w, sample, kv, group int) {
	hd, seq := t.at.HeadDim, t.at.Seq
	dk, dv := t.dkv[w][:seq*hd], t.dkv[w][seq*hd:][:seq*hd]
	clear(dk)
	clear(dv)
	p, dp, acc := t.scores[w], t.slopes[w], t.accu[w][:hd]
	for h := kv * group; h < (kv+1)*group; h++ {
		for s := range seq {
			dout, q := t.query(t.dout, sample, h, s), t.query(t.q, sample, h, s)
			t.weights(p, sample, h, kv, s, false)
			keys := t.keys(s)
			for j := range keys {
				dp[j] = dot(dout, t.key(t.v, sample, kv, j))
			}
			t.drop(dp, sample, h, s)
			delta := dot(dout, t.query(t.out, sample, h, s))
			clear(acc)
			for j := range keys {
				ds := t.scale * p[j] * (dp[j] - delta)
				axpy(acc, ds, t.key(t.k, sample, kv, j))
				axpy(dk[j*hd:][:hd], ds, q)
			}
			for i, x := range acc {
				t.query(t.dq, sample, h, s)[i] = T(x)
			}
			t.drop(p, sample, h, s)
			for j, x := range p[:keys] {
				axpy(dv[j*hd:][:hd], x, dout)
			}
		}
	}
	for s := range seq {
		for i := range hd {
			t.key(t.dk, sample, kv, s)[i] = T(dk[s*hd+i])
			t.key(t.dv, sample, kv, s)[i] = T(dv[s*hd+i])
		}
	}
}

func dot[T float](x, y []T) float64 {
	var s float64
	for i, a := range x {
		s += float64(a) * float64(y[i])
	}
	return s
}

func axpy[T float](y []float64, a float64, x []T) {
	for i, b := range x {
		y[i] += a * float64(b)
	}
}
