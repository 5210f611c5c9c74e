package train

import (
	"sort"

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
				index = append(index, int32(s.Index*seq+i))
				b.RowSample = append(b.RowSample, int32(n))
			}
			positions = append(positions, places(s, r[0], r[1])...)
		}
	}
	sampleIndex := make([]int32, 0, len(samples))
	for _, s := range samples {
		sampleIndex = append(sampleIndex, int32(s.Index))
	}
	if samples[0].Starts != nil {
		b.Segments = segments(dev, samples, p)
	}
	up := func(v []int32) *tensor.Tensor {
		t := dev.Heap().New(tensor.Inputs, tensor.I32, len(v))
		dev.UploadI32(t, v)
		return t
	}
	b.Tokens, b.Targets, b.Positions, b.Index, b.SampleIndex = up(tokens), up(targets), up(positions), up(index), up(sampleIndex)
	return b
}

// places are the positions of tokens lo up to hi: in their document where documents are apart, else in the sample.
func places(s data.Sample, lo, hi int) []int32 {
	out := make([]int32, 0, hi-lo)
	doc := document(s, lo)
	for i := lo; i < hi; i++ {
		if doc+1 < len(s.Starts) && s.Starts[doc+1] == i {
			doc++
		}
		from := 0
		if doc >= 0 {
			from = s.Starts[doc]
		}
		out = append(out, int32(i-from))
	}
	return out
}

// document is the number of the document that holds token at; -1 where the sample is one.
func document(s data.Sample, at int) int {
	return sort.SearchInts(s.Starts, at+1) - 1
}

// segments numbers the documents of all tokens of the samples. A context rank needs those of the tokens that visit it too: they lie
// stretch by stretch, in the order of the sample.
func segments(dev tensor.Device, samples []data.Sample, p part) *tensor.Tensor {
	seq := len(samples[0].Tokens)
	n, list := seq, make([]int32, 0, len(samples)*seq)
	if p.of > 1 {
		n = seq / (2 * p.of)
	}
	for lo := 0; lo < seq; lo += n {
		for _, s := range samples {
			for i := lo; i < lo+n; i++ {
				list = append(list, int32(document(s, i)))
			}
		}
	}
	t := dev.Heap().New(tensor.Inputs, tensor.I32, len(list))
	dev.UploadI32(t, list)
	return t
}

func unload(b *nn.Batch) {
	for _, t := range []*tensor.Tensor{b.Tokens, b.Targets, b.Positions, b.Index, b.SampleIndex, b.Segments} {
		t.Release()
	}
}
