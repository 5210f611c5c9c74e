package cpu

import "math"

// queryBlock is how many queries are worked on at a time: their scores against all keys are the largest scratch
// memory of a worker, so no head ever has all of its scores anywhere.
const queryBlock = 64

// tiledAttention is attention by matrix products on blocks of queries:
//
//	S = Q K^T    P = softmax(scale S)    O = P V
//	dP = dO V^T  dS = scale P (dP - dO.O)  dQ = dS K  dK += dS^T Q  dV += P^T dO
//
// (Dao 2023, §3, with whole rows of scores in place of a running maximum.)
type tiledAttention[T float] struct {
	*attentionTask[T]
	rows    *rowOps
	workers []attentionWorker[T]
}

// attentionWorker is one thread's memory.
type attentionWorker[T float] struct {
	mm     tiledTask[T]
	pack   packed[T]
	p, dp  []T // [queryBlock Seq]
	dk, dv []T // [Seq hd]: sums over the query heads that share a key head
	sums   [queryBlock]T
}

func (d *core[T]) tiledAttention(t *attentionTask[T]) {
	a := &d.ops.tiledAt
	a.attentionTask, a.rows = t, d.rows
	if len(a.workers) < d.opts.Threads {
		a.workers = make([]attentionWorker[T], d.opts.Threads)
	}
	for i := range a.workers {
		w := &a.workers[i]
		w.mm.kernels = d.tile
		grow(&w.p, queryBlock*t.at.Seq)
		if t.backward {
			grow(&w.dp, queryBlock*t.at.Seq)
			grow(&w.dk, t.at.Seq*t.at.HeadDim)
			grow(&w.dv, t.at.Seq*t.at.HeadDim)
		}
	}
	if t.backward {
		d.team.split(t.at.Samples*t.at.KVHeads, 1, t.work(), a)
	} else {
		d.team.split(t.at.Samples*t.at.Heads*a.blocks(), 1, t.work(), a)
	}
}

// blocks is how many blocks of queries a head has.
func (a *tiledAttention[T]) blocks() int { return (a.at.Seq + queryBlock - 1) / queryBlock }

// queriesAt is a head's block of queries number i.
func (a *tiledAttention[T]) queriesAt(sample, head, i int) queries {
	b := queries{sample: sample, head: head, kv: head / (a.at.Heads / a.at.KVHeads), first: i * queryBlock}
	b.n = min(queryBlock, a.at.Seq-b.first)
	b.keys = a.keys(b.first + b.n - 1)
	return b
}

// grow makes a scratch slice n long. What it held is lost.
func grow[T any](s *[]T, n int) {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	*s = (*s)[:n]
}

// run does blocks of queries in the forward; in the backward key heads, for the query heads that share one add into its dk and dv
// in order.
func (a *tiledAttention[T]) run(worker, lo, hi int) {
	w := &a.workers[worker]
	for i := lo; i < hi; i++ {
		if a.backward {
			a.headBackward(w, i/a.at.KVHeads, i%a.at.KVHeads)
			continue
		}
		head := i / a.blocks()
		a.blockForward(w, a.queriesAt(head/a.at.Heads, head%a.at.Heads, i%a.blocks()))
	}
}

func (a *tiledAttention[T]) headBackward(w *attentionWorker[T], sample, kv int) {
	clear(w.dk)
	clear(w.dv)
	group, hd := a.at.Heads/a.at.KVHeads, a.at.HeadDim
	for h := kv * group; h < (kv+1)*group; h++ {
		for i := range a.blocks() {
			a.blockBackward(w, a.queriesAt(sample, h, i))
		}
	}
	for s := range a.at.Seq {
		copy(a.key(a.dk, sample, kv, s), w.dk[s*hd:])
		copy(a.key(a.dv, sample, kv, s), w.dv[s*hd:])
	}
}

// queries is a block of one head's queries, and how many keys any of them sees.
type queries struct{ sample, head, kv, first, n, keys int }

// of is a tensor's rows of the block's queries, and keysOf those of its keys: row r is stride elements on.
func (a *tiledAttention[T]) of(x []T, b queries) (rows []T, stride int) {
	return x[((b.sample*a.at.Seq+b.first)*a.at.Heads+b.head)*a.at.HeadDim:], a.at.Heads * a.at.HeadDim
}

func (a *tiledAttention[T]) keysOf(x []T, b queries) (rows []T, stride int) {
	return x[(b.sample*a.at.Seq*a.at.KVHeads+b.kv)*a.at.HeadDim:], a.at.KVHeads * a.at.HeadDim
}

// multiply is c [m n] (+)= op(x) op(y) on this thread alone.
func (w *attentionWorker[T]) multiply(m, n, k int, c []T, ldc int, x []T, ldx int, turnX bool, y []T, ldy int, turnY, add bool) {
	t := &w.mm
	t.m, t.n, t.k, t.k1, t.add = m, n, k, k, add
	t.c, t.ldc, t.a, t.lda, t.transA, t.b, t.ldb, t.transB = c, ldc, x, ldx, turnX, y, ldy, turnY
	t.region(&w.pack, 0, m, 0, n, n)
}

// scores leaves S in w.p, with -Inf where a query does not see a key.
func (a *tiledAttention[T]) scores(w *attentionWorker[T], b queries) {
	q, ldq := a.of(a.q, b)
	k, ldk := a.keysOf(a.k, b)
	w.multiply(b.n, b.keys, a.at.HeadDim, w.p, b.keys, q, ldq, false, k, ldk, true, false)
	if a.segments == nil {
		return
	}
	for i := range b.n {
		a.blindRow(w.p[i*b.keys:][:a.keys(b.first+i)], b.sample, b.first+i)
	}
}

func (a *tiledAttention[T]) blockForward(w *attentionWorker[T], b queries) {
	a.scores(w, b)
	for i := range b.n {
		s := b.first + i
		row := w.p[i*b.keys:][:b.keys]
		n := a.keys(s)
		top := a.rowMax(row[:n])
		at := (b.sample*a.at.Heads+b.head)*a.at.Seq + s
		if math.IsInf(float64(top), -1) { // no key in sight
			clear(row)
			a.lse[at], w.sums[i] = T(math.Inf(-1)), 1
			continue
		}
		shift := -T(a.scale) * top
		w.sums[i] = a.rowExp(row[:n], shift)
		a.lse[at] = T(math.Log(float64(w.sums[i])) - float64(shift))
		clear(row[n:])
		a.dropRow(row[:n], b, s)
	}
	v, ldv := a.keysOf(a.v, b)
	o, ldo := a.of(a.out, b)
	w.multiply(b.n, a.at.HeadDim, b.keys, o, ldo, w.p, b.keys, false, v, ldv, false, false)
	for i := range b.n {
		a.rowScale(o[i*ldo:][:a.at.HeadDim], 1/w.sums[i])
	}
}

func (a *tiledAttention[T]) blockBackward(w *attentionWorker[T], b queries) {
	hd := a.at.HeadDim
	q, ldq := a.of(a.q, b)
	do, ldo := a.of(a.dout, b)
	o, _ := a.of(a.out, b)
	k, ldk := a.keysOf(a.k, b)
	v, ldv := a.keysOf(a.v, b)
	a.scores(w, b)
	w.multiply(b.n, b.keys, hd, w.dp, b.keys, do, ldo, false, v, ldv, true, false)
	for i := range b.n {
		s := b.first + i
		n := a.keys(s)
		p, dp := w.p[i*b.keys:][:b.keys], w.dp[i*b.keys:][:b.keys]
		lse := a.lse[(b.sample*a.at.Heads+b.head)*a.at.Seq+s]
		if math.IsInf(float64(lse), -1) {
			clear(p)
		} else {
			a.rowExp(p[:n], -lse)
			clear(p[n:])
		}
		a.dropRow(dp[:n], b, s)
		a.rowScores(dp[:n], p[:n], a.rowDot(do[i*ldo:][:hd], o[i*ldo:][:hd]))
		clear(dp[n:])
		a.dropRow(p[:n], b, s)
	}
	dq, lddq := a.of(a.dq, b)
	w.multiply(b.n, hd, b.keys, dq, lddq, w.dp, b.keys, false, k, ldk, false, false)
	w.multiply(b.keys, hd, b.n, w.dk, hd, w.dp, b.keys, true, q, ldq, false, true)
	w.multiply(b.keys, hd, b.n, w.dv, hd, w.p, b.keys, true, do, ldo, false, true)
}
