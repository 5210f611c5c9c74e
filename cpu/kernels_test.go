package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"triax/tensor"
)

// bed is a device and the tensors of one transformer layer's size, for kernels to run on.
type bed struct {
	*Device
	x, y, z, u        *tensor.Tensor // [tokens width]
	w, b, dw, db      *tensor.Tensor // [width]
	mean, rstd, sums  *tensor.Tensor // [tokens]
	q, dq             *tensor.Tensor // [tokens heads*hd]
	k, v, dk, dv      *tensor.Tensor // [tokens kvHeads*hd]
	lse               *tensor.Tensor
	table             *tensor.Tensor // [vocab width]
	weights           *tensor.Tensor // [width width]
	logits            *tensor.Tensor // [rows vocab]
	max, sum, target  *tensor.Tensor // [rows]
	ids, positions    *tensor.Tensor // [tokens]
	targets           *tensor.Tensor // [rows]
	half              *tensor.Tensor // [tokens width] bfloat16
	attention, packed tensor.Attention
}

const (
	bedTokens, bedWidth, bedHeads = 256, 768, 12
	bedVocab, bedRows             = 50304, 16
)

func newBed(opts Options) *bed {
	d := New(opts)
	rng := rand.New(rand.NewPCG(7, 7))
	fill := func(shape ...int) *tensor.Tensor {
		t := d.New(tensor.Workspace, shape...)
		v := make([]float64, t.Len())
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		d.Upload(t, v)
		return t
	}
	whole := func(n, below int) *tensor.Tensor {
		t := d.Heap().New(tensor.Inputs, tensor.I32, n)
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(rng.IntN(below))
		}
		d.UploadI32(t, v)
		return t
	}
	wide := func() *tensor.Tensor { return fill(bedTokens, bedWidth) }
	b := &bed{
		Device: d, x: wide(), y: wide(), z: wide(), u: wide(), q: wide(), dq: wide(), k: wide(), v: wide(), dk: wide(), dv: wide(),
		w: fill(bedWidth), b: fill(bedWidth), dw: fill(bedWidth), db: fill(bedWidth),
		mean: fill(bedTokens), rstd: fill(bedTokens), sums: fill(bedTokens), lse: fill(bedTokens * bedHeads),
		table: fill(bedVocab/16, bedWidth), logits: fill(bedRows, bedVocab), max: fill(bedRows), sum: fill(bedRows), target: fill(bedRows),
		ids: whole(bedTokens, bedVocab/16), positions: whole(bedTokens, 1024), targets: whole(bedRows, bedVocab),
		half: d.Heap().New(tensor.Workspace, tensor.BF16, bedTokens, bedWidth),
	}
	b.attention = tensor.Attention{Samples: 1, Seq: bedTokens, Heads: bedHeads, KVHeads: bedHeads, HeadDim: bedWidth / bedHeads}
	b.packed = b.attention
	b.packed.Rate, b.packed.Seed, b.packed.HeadsTotal, b.packed.SampleIndex = 0.1, 3, bedHeads, whole(1, 2)
	b.packed.Segments = whole(bedTokens, 2)
	b.weights = b.table.Rows(0, bedWidth)
	b.Copy(b.half, b.x)
	return b
}

// kernel is one operation of the device on a bed, and the bytes of the tensors it reads and writes, for a rate; 0 where that says
// nothing.
type kernel struct {
	name  string
	bytes int
	run   func(b *bed)
}

func kernels32() []kernel {
	const n, logits = 4 * bedTokens * bedWidth, 4 * bedRows * bedVocab
	adam := tensor.AdamW{Rate: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Step: 3, Scale: 1}
	sgd := tensor.SGD{Rate: 1e-3, Momentum: 0.9, Scale: 1}
	return []kernel{
		{"Gemm", 0, func(b *bed) { b.Gemm(b.y, b.x, b.weights, false, true, 0) }},
		{"Attention", 0, func(b *bed) { b.Attention(b.y, b.lse, b.q, b.k, b.v, b.attention) }},
		{"AttentionGrad", 0, func(b *bed) { b.AttentionGrad(b.dq, b.dk, b.dv, b.z, b.y, b.lse, b.q, b.k, b.v, b.attention) }},
		{"AttentionPacked", 0, func(b *bed) { b.Attention(b.y, b.lse, b.q, b.k, b.v, b.packed) }},
		{"AttentionPackedGrad", 0, func(b *bed) { b.AttentionGrad(b.dq, b.dk, b.dv, b.z, b.y, b.lse, b.q, b.k, b.v, b.packed) }},
		{"Zero", n, func(b *bed) { b.Zero(b.u) }},
		{"Copy", 2 * n, func(b *bed) { b.Copy(b.u, b.x) }},
		{"CopyToBF16", n + n/2, func(b *bed) { b.Copy(b.half, b.x) }},
		{"CopyFromBF16", n + n/2, func(b *bed) { b.Copy(b.u, b.half) }},
		{"Add", 3 * n, func(b *bed) { b.Add(b.u, b.x) }},
		{"Scale", 2 * n, func(b *bed) { b.Scale(b.u, 0.5) }},
		{"AddBias", 2 * n, func(b *bed) { b.AddBias(b.u, b.w) }},
		{"BiasGrad", n, func(b *bed) { b.BiasGrad(b.db, b.x) }},
		{"ScaleRows", 2 * n, func(b *bed) { b.ScaleRows(b.u, b.x, b.sums) }},
		{"DotRows", 2 * n, func(b *bed) { b.DotRows(b.sums, b.x, b.y) }},
		{"Gelu", 2 * n, func(b *bed) { b.Gelu(b.u, b.x) }},
		{"GeluGrad", 3 * n, func(b *bed) { b.GeluGrad(b.u, b.x, b.z) }},
		{"SwiGLU", 3 * n, func(b *bed) { b.SwiGLU(b.u, b.x, b.z) }},
		{"SwiGLUGrad", 5 * n, func(b *bed) { b.SwiGLUGrad(b.u, b.dq, b.x, b.z, b.y) }},
		{"Rope", 2 * n, func(b *bed) { b.Rope(b.u, b.positions, bedHeads, bedRotary, false) }},
		{"Dropout", 2 * n, func(b *bed) { b.Dropout(b.u, b.x, b.ids, 3, bedWidth, 0, 0.1) }},
		{"LayerNorm", 2 * n, func(b *bed) { b.LayerNorm(b.u, b.mean, b.rstd, b.x, b.w, b.b, 1e-5) }},
		{"LayerNormInput", 3 * n, func(b *bed) { b.LayerNormInput(b.u, b.z, b.x, b.w, b.mean, b.rstd) }},
		{"LayerNormWeight", 2 * n, func(b *bed) { b.LayerNormWeight(b.dw, b.db, b.z, b.x, b.mean, b.rstd) }},
		{"RMSNorm", 2 * n, func(b *bed) { b.RMSNorm(b.u, b.rstd, b.x, b.w, 1e-5) }},
		{"RMSNormInput", 3 * n, func(b *bed) { b.RMSNormInput(b.u, b.z, b.x, b.w, b.rstd) }},
		{"RMSNormWeight", 2 * n, func(b *bed) { b.RMSNormWeight(b.dw, b.z, b.x, b.rstd) }},
		{"Embed", 2 * n, func(b *bed) { b.Embed(b.u, b.table, b.ids, 0) }},
		{"EmbedGrad", 3 * n, func(b *bed) { b.EmbedGrad(b.table, b.x, b.ids, 0) }},
		{"RowMax", logits, func(b *bed) { b.RowMax(b.max, b.logits, bedVocab) }},
		{"RowSum", logits, func(b *bed) { b.RowSum(b.sum, b.target, b.logits, b.max, b.targets, 0, bedVocab) }},
		{"LossGrad", 2 * logits, func(b *bed) { b.LossGrad(b.logits, b.max, b.sum, b.targets, 0, bedVocab, 1) }},
		{"AdamW", 7 * n, func(b *bed) { b.AdamW(b.u, b.x, b.dq, b.dk, adam) }},
		{"SGD", 5 * n, func(b *bed) { b.SGD(b.u, b.x, b.dq, sgd) }},
		{"SumSquares", n, func(b *bed) { b.SumSquares(b.x) }},
	}
}

// TestKernelsAllocateNothing: a step that has settled allocates nothing, whatever the instructions and the number of threads.
func TestKernelsAllocateNothing(t *testing.T) {
	for _, isa := range Supported() {
		for _, threads := range []int{1, 2} {
			b := newBed(Options{Float: tensor.F32, ISA: isa, Threads: threads})
			for _, k := range kernels32() {
				k.run(b)
				// The runtime's own allocations are counted too, now and then: a kernel that allocates does so every time.
				n := testing.AllocsPerRun(3, func() { k.run(b) })
				for try := 0; try < 5 && n != 0; try++ {
					n = testing.AllocsPerRun(3, func() { k.run(b) })
				}
				if n != 0 {
					t.Errorf("%s, %s, %d threads: %v allocations a call", k.name, isa, threads, n)
				}
			}
			b.Close()
		}
	}
}

func BenchmarkKernel(b *testing.B) {
	for _, isa := range Supported() {
		for _, threads := range []int{1, 2} {
			if isa != Supported()[0] && threads > 1 {
				continue
			}
			bed := newBed(Options{Float: tensor.F32, ISA: isa, Threads: threads, Spin: true, HugePages: true})
			for _, k := range kernels32() {
				b.Run(fmt.Sprintf("%s/%s/threads%d", k.name, isa, threads), func(b *testing.B) {
					k.run(bed)
					b.SetBytes(int64(k.bytes))
					for b.Loop() {
						k.run(bed)
					}
				})
			}
			bed.Close()
		}
	}
}

// bedRotary are the frequencies of heads of bedWidth/bedHeads features.
var bedRotary = func() []float64 {
	freq := make([]float64, bedWidth/bedHeads/2)
	for i := range freq {
		freq[i] = math.Pow(1e4, -float64(i)/float64(len(freq)))
	}
	return freq
}()
