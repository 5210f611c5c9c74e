package devicetest

import (
	"fmt"
	"math"

	"triax/tensor"
)

// crossEntropy is the sum over unmasked rows of -log softmax(target), and scale times its gradient.
func crossEntropy(logits []float64, targets []int32, vocab int, scale float64) (loss float64, grad []float64) {
	grad = make([]float64, len(logits))
	for t, id := range targets {
		if id < 0 {
			continue
		}
		row := logits[t*vocab : (t+1)*vocab]
		top := row[0]
		for _, z := range row {
			top = max(top, z)
		}
		var sum float64
		for _, z := range row {
			sum += math.Exp(z - top)
		}
		loss += math.Log(sum) + top - row[id]
		for j, z := range row {
			grad[t*vocab+j] = scale * math.Exp(z-top) / sum
		}
		grad[t*vocab+int(id)] -= scale
	}
	return loss, grad
}

// targets has every third row masked, the first and last column among the rest.
func (b *bench) targets(rows, vocab int) []int32 {
	ids := make([]int32, rows)
	for t := range ids {
		ids[t] = int32(b.rng.IntN(vocab))
	}
	ids[0] = int32(vocab - 1)
	ids[rows-1] = 0
	for t := 1; t < rows-1; t += 3 {
		ids[t] = -1 - int32(t)
	}
	return ids
}

func losses(b *bench) {
	for _, s := range [][2]int{{1, 1}, {3, 7}, {7, 17}, {17, 65}, {65, 1003}} {
		for _, spread := range []float64{1, 300} {
			b.loss(s[0], s[1], 3, spread)
			b.loss(s[0], s[1], 0, spread)
			b.free()
		}
	}
}

// loss: one device holds the whole vocabulary and some padding columns of NaN.
func (b *bench) loss(rows, vocab, padding int, spread float64) {
	ids := b.targets(rows, vocab)
	logits, dense := b.padded(rows, vocab, padding, spread)
	max, sum, target, targets := b.blankSum(rows), b.blankSum(rows), b.blankSum(rows), b.ints(ids)
	b.dev.RowMax(max, logits, vocab)
	b.dev.RowSum(sum, target, logits, max, targets, 0, vocab)
	want, grad := crossEntropy(dense, ids, vocab, 0.125)
	what := fmt.Sprintf("loss of %d rows, %d+%d columns, spread %v", rows, vocab, padding, spread)
	if got := b.dev.LossOf(sum, target, max, targets); math.Abs(got-want) > b.tol*(want+spread) {
		b.Errorf("%s: %v, want %v", what, got, want)
	}
	b.dev.LossGrad(logits, max, sum, targets, 0, vocab, 0.125)
	b.gradient(what, logits, grad, rows, vocab, padding)
	if rows*vocab <= 200 && spread == 1 {
		got := b.read(logits)
		flat := make([]float64, 0, rows*vocab)
		for t := range rows {
			flat = append(flat, got[t*(vocab+padding):][:vocab]...)
		}
		b.slopes(what, b.put(flat, rows*vocab), func(z []float64) []float64 {
			l, _ := crossEntropy(z, ids, vocab, 1)
			return []float64{l}
		}, dense, []float64{0.125})
	}
}

// padded makes logits [rows vocab+padding] with NaN in the padding, and returns them without it.
func (b *bench) padded(rows, vocab, padding int, spread float64) (*tensor.Tensor, []float64) {
	all := make([]float64, rows*(vocab+padding))
	for i := range all {
		all[i] = math.NaN()
		if i%(vocab+padding) < vocab {
			all[i] = spread * b.rng.NormFloat64()
		}
	}
	logits := b.put(all, rows, vocab+padding)
	var dense []float64
	for t, got := 0, b.read(logits); t < rows; t++ {
		dense = append(dense, got[t*(vocab+padding):][:vocab]...)
	}
	return logits, dense
}

func (b *bench) gradient(what string, logits *tensor.Tensor, grad []float64, rows, vocab, padding int) {
	b.Helper()
	want := make([]float64, rows*(vocab+padding))
	for t := range rows {
		copy(want[t*(vocab+padding):], grad[t*vocab:][:vocab])
	}
	b.close(what+" gradient", b.read(logits), want, b.tol, 0.125) // softmax less one, where the target is sure
}

// shardedLosses: three devices' worth of columns, cut unevenly, one of them nothing but padding; max, sum
// and target are reduced in between as a vocabulary-parallel caller does.
func shardedLosses(b *bench) {
	const rows, vocab, width = 9, 37, 20
	ids := b.targets(rows, vocab)
	values := make([]float64, rows*vocab)
	for i := range values {
		values[i] = 4 * b.rng.NormFloat64()
	}
	values = b.read(b.put(values, len(values)))
	targets := b.ints(ids)
	var logits []*tensor.Tensor
	cuts := []int{0, 20, 37, 37}
	top := make([]float64, rows)
	for i := range top {
		top[i] = math.Inf(-1)
	}
	for p := range 3 {
		part := make([]float64, rows*width)
		for i := range part {
			part[i] = math.NaN()
			if c := cuts[p] + i%width; c < cuts[p+1] {
				part[i] = values[i/width*vocab+c]
			}
		}
		logits = append(logits, b.put(part, rows, width))
		m := b.blankSum(rows)
		b.dev.RowMax(m, logits[p], cuts[p+1]-cuts[p])
		for i, v := range b.read(m) {
			top[i] = max(top[i], v)
		}
	}
	max, sum, target := b.putSum(top, rows), b.putSum(make([]float64, rows), rows), b.putSum(make([]float64, rows), rows)
	for p := range 3 {
		s, z := b.blankSum(rows), b.blankSum(rows)
		b.dev.RowSum(s, z, logits[p], max, targets, cuts[p], cuts[p+1]-cuts[p])
		b.dev.Add(sum, s)
		b.dev.Add(target, z)
	}
	want, grad := crossEntropy(values, ids, vocab, 0.5)
	if got := b.dev.LossOf(sum, target, max, targets); math.Abs(got-want) > b.tol*want {
		b.Errorf("loss %v, want %v", got, want)
	}
	for p := range 3 {
		n := cuts[p+1] - cuts[p]
		b.dev.LossGrad(logits[p], max, sum, targets, cuts[p], n, 0.5)
		var part []float64
		for t := range rows {
			part = append(part, grad[t*vocab+cuts[p]:][:n]...)
		}
		b.gradient(fmt.Sprintf("columns from %d", cuts[p]), logits[p], part, rows, n, width-n)
	}
}
