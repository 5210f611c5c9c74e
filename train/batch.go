package train

import (
	"triax/data"
	"triax/nn"
	"triax/tensor"
)

// load puts a microbatch into device memory. scale is one over the valid tokens of the whole global batch.
func load(dev tensor.Device, samples []data.Sample, scale float64) *nn.Batch {
	seq := len(samples[0].Tokens)
	T := len(samples) * seq
	b := &nn.Batch{Samples: len(samples), Seq: seq, Scale: scale}
	tokens, targets, positions, index := make([]int32, 0, T), make([]int32, 0, T), make([]int32, 0, T), make([]int32, 0, T)
	sampleIndex := make([]int32, 0, len(samples))
	for _, s := range samples {
		tokens, targets = append(tokens, s.Tokens...), append(targets, s.Targets...)
		for i := range seq {
			positions, index = append(positions, int32(i)), append(index, int32(s.Index*seq+i))
		}
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
