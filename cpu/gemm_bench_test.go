package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"triax/tensor"
)

// precisions are the ways to multiply that this processor has: float32, float32 rounded to bfloat16, and what is bfloat16 in memory.
func precisions() []Options {
	all := []Options{{Float: tensor.F32}}
	if HasBF16() {
		all = append(all, Options{Float: tensor.F32, BF16: true})
	}
	all = append(all, Options{Float: tensor.BF16})
	for i := range all {
		all[i].Spin, all[i].HugePages = true, true
	}
	return all
}

func precision(o Options) string {
	switch {
	case o.BF16:
		return "rounded"
	case o.Float == tensor.BF16:
		return "bf16"
	}
	return "float"
}

// rate reports GFLOP/s, and the share of the float32 multiply-add rate of as many threads measured before and after.
func rate(b *testing.B, threads int, flop float64, run func()) {
	run()
	peak := Peak(threads)
	for b.Loop() {
		run()
	}
	seconds := b.Elapsed().Seconds()
	peak = max(peak, Peak(threads))
	got := flop * float64(b.N) / seconds / 1e9
	b.ReportMetric(got, "GFLOP/s")
	b.ReportMetric(100*got/peak, "%peak")
}

// BenchmarkGemm multiplies the same operands over and over.
func BenchmarkGemm(b *testing.B) {
	shapes := [][3]int{
		{64, 64, 64}, {256, 384, 384}, {512, 768, 768}, {512, 3072, 768}, {512, 768, 3072}, {1024, 1024, 1024}, {2048, 2048, 2048}, {256, 50304, 768},
	}
	for _, opts := range precisions() {
		for _, threads := range []int{1, 2} {
			for _, s := range shapes {
				for _, form := range []string{"NT", "NN", "TN"} {
					if testing.Short() && form != "NT" {
						continue
					}
					b.Run(fmt.Sprintf("%s/%s/%dx%dx%d/threads%d", precision(opts), form, s[0], s[1], s[2], threads), func(b *testing.B) {
						opts.Threads = threads
						d := New(opts)
						defer d.Close()
						ta, tb := form[0] == 'T', form[1] == 'T'
						c, x, y := gemmCase(d, rand.New(rand.NewPCG(1, 1)), s[0], s[1], s[2], ta, tb)
						rate(b, threads, 2*float64(s[0])*float64(s[1])*float64(s[2]), func() { d.Gemm(c, x, y, ta, tb, 0) })
					})
				}
			}
		}
	}
}

// BenchmarkLinear multiplies as a training step of GPT-2 small on 256 tokens does: by the weights of one linear layer after the
// other, each of which comes from memory.
func BenchmarkLinear(b *testing.B) {
	const tokens, layers = 256, 12
	for _, opts := range precisions() {
		for _, threads := range []int{1, 2} {
			opts.Threads = threads
			d := New(opts)
			type linear struct{ w, dw, x, y *tensor.Tensor }
			var all []linear
			var flop float64
			zeros := func(rows, cols int) *tensor.Tensor {
				t := d.New(tensor.Workspace, rows, cols)
				d.Zero(t)
				return t
			}
			for range layers {
				for _, s := range [][]int{{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}} {
					dw := tensor.NewAccum(d, tensor.Workspace, s...)
					d.Zero(dw)
					all = append(all, linear{zeros(s[0], s[1]), dw, zeros(tokens, s[1]), zeros(tokens, s[0])})
					flop += 2 * tokens * float64(s[0]) * float64(s[1])
				}
			}
			for _, pass := range []struct {
				name string
				run  func(l linear)
			}{
				{"forward", func(l linear) { d.Gemm(l.y, l.x, l.w, false, true, 0) }},
				{"input", func(l linear) { d.Gemm(l.x, l.y, l.w, false, false, 0) }},
				{"weight", func(l linear) { d.Gemm(l.dw, l.y, l.x, true, false, 1) }},
			} {
				b.Run(fmt.Sprintf("%s/%s/threads%d", precision(opts), pass.name, threads), func(b *testing.B) {
					rate(b, threads, flop, func() {
						for _, l := range all {
							pass.run(l)
						}
					})
				})
			}
			d.Close()
		}
	}
}
