package train

import (
	"triax/cp"
	"triax/data"
	"triax/nn"
	"triax/tensor"
)

// part says which tokens of its samples a rank takes: stretches of a context rank, or whole samples.
type part struct{ rank, of int }

// stretches are the token ranges [lo, hi) of a sample, in the order in which the rank holds them.
func (p part) stretches(seq int) [][2]int {
	if p.of == 1 {
		return [][2]int{{0, seq}}
	}
	n := seq / (2 * p.of)
	var out [][2]int
	for _, i := range cp.Stretches(p.rank, p.of) {
		out = append(out, [2]int{i * n, (i + 1) * n})
	}
	return out
}

// row is where token at of the first sample lies among the rank's tokens; -1 when another rank has it.
func (p part) row(at, samples, seq int) int {
	base := 0
	for _, r := range p.stretches(seq) {
		if r[0] <= at && at < r[1] {
			return base + at - r[0]
		}
		base += samples * (r[1] - r[0])
	}
	return -1
}

// load puts a microbatch into device memory: the part of its samples that this rank takes, stretch by stretch. scale
// is one over the valid tokens of the whole global batch, which has all samples.
func load(dev tensor.Device, samples []data.Sample, p part, scale float64, all int) *nn.Batch {
	seq := len(samples[0].Tokens)
	b := &nn.Batch{Samples: len(samples), Seq: seq / p.of, Scale: scale, SampleScale: 1 / float64(all), SampleSeq: seq}
	T := len(samples) * seq / p.of
	tokens, targets, positions, index := make([]int32, 0, T), make([]int32, 0, T), make([]int32, 0, T), make([]int32, 0, T)
	for _, r := range p.stretches(seq) {
		for n, s := range samples {
			tokens, targets = append(tokens, s.Tokens[r[0]:r[1]]...), append(targets, s.Targets[r[0]:r[1]]...)
			for i := r[0]; i < r[1]; i++ {
				positions, index = append(positions, int32(i)), append(index, int32(s.Index*seq+i))
				b.RowSample = append(b.RowSample, int32(n))
			}
		}
	}
	sampleIndex := make([]int32, 0, len(samples))
	for _, s := range samples {
		sampleIndex = append(sampleIndex, int32(s.Index))
	}
	up := func(v []int32) *tensor.Tensor {
		t := dev.Heap().New(tensor.Inputs, tensor.I32, len(v))
		dev.UploadI32(t, v)
		return t
	}
	b.Tokens, b.Targets, b.Positions, b.Index, b.SampleIndex = up(tokens), up(targets), up(positions), up(index), up(sampleIndex)
	return b
}

func unload(b *nn.Batch) {
	for _, t := range []*tensor.Tensor{b.Tokens, b.Targets, b.Positions, b.Index, b.SampleIndex} {
		t.Release()
	}
}
