package plan

import "math"

// tileShape is a tile of a matrix product that one processor of a GPU works on, and how near the peak it can run.
type tileShape struct {
	m, n int
	rate float64
}

// Larger tiles reuse more of what they read; smaller ones fill the processors better when there is little work.
var tileShapes = []tileShape{{256, 128, 1}, {128, 256, 1}, {128, 128, 0.93}, {128, 64, 0.8}, {64, 64, 0.6}}

// Gemm is the time of c [m n] = a b with inner dimension k: the tiles go over the processors in waves, the last one partly idle
// (wave quantisation); short inner dimensions do not fill the pipelines; and never faster than its operands can be read and written.
func (c Cluster) Gemm(m, n, k int, low bool) float64 {
	if m == 0 || n == 0 || k == 0 {
		return 0
	}
	if low && c.Float8 {
		c.Float8, c.Peak, c.Efficiency = false, 2*c.Peak, c.Efficiency8
		// Both operands are cast: read at 2 bytes, written at 1; weights once a step, so not counted.
		return c.Gemm(m, n, k, false) + 3*float64(m)*float64(k)/(c.Bandwidth*c.Stream) + c.Launch
	}
	flops := 2 * float64(m) * float64(n) * float64(k)
	depth := float64(k) / (float64(k) + c.Depth)
	best := math.Inf(1)
	if c.Units == 1 {
		best = flops / (c.Peak * c.Efficiency * depth)
	} else {
		for _, t := range tileShapes {
			tiles := math.Ceil(float64(m)/float64(t.m)) * math.Ceil(float64(n)/float64(t.n))
			waves := math.Ceil(tiles / float64(c.Units))
			padded := waves * float64(c.Units) * 2 * float64(t.m) * float64(t.n) * float64(k)
			best = min(best, padded/(c.Peak*c.Efficiency*depth*t.rate))
		}
	}
	bytes := float64(c.element()) * (float64(m)*float64(k) + float64(k)*float64(n) + float64(m)*float64(n))
	return max(best, bytes/(c.Bandwidth*c.Stream)) + c.Launch
}

// Attention is tiled attention: products at a share of the peak over the pairs that are seen; backward does five for the forward's two
// (Dao 2023, §3.1). With ScorePasses it is products over all pairs, and softmax and dropout that read and write every score.
func (c Cluster) Attention(samples, heads, seq, dim int, full, backward bool) float64 {
	pairs := float64(samples) * float64(heads) * float64(seq) * float64(seq)
	forward := 4 * pairs * float64(dim) / (c.Peak * c.AttentionRate)
	if c.ScorePasses > 0 {
		move := pairs * float64(c.element()) * c.ScorePasses / (c.Bandwidth * c.Stream)
		t := forward + move + 4*c.Launch
		if !backward {
			return t
		}
		if c.CoreAgain {
			return t + 2*forward + 1.5*move + 6*c.Launch
		}
		return 2*forward + 1.5*move + 6*c.Launch
	}
	if !full {
		forward /= 2
	}
	if !backward {
		return forward + c.Launch
	}
	return 2.5*forward + c.Launch
}

// Pass is a kernel bound by memory.
func (c Cluster) Pass(bytes float64) float64 { return bytes/(c.Bandwidth*c.Stream) + c.Launch }

// Fusion is which passes the program merges.
func (c Cluster) Fusion() Fusion {
	return Fusion{Elementwise: c.Fused, LooseLoss: c.LooseLoss}
}

// element is the bytes of an activation.
func (c Cluster) element() int {
	if c.Precision == "fp32" {
		return 4
	}
	return 2
}
