package devicetest

import (
	"math"

	"triax/tensor"
)

// attend is the reference: whole score matrices, and the softmax's whole Jacobian.
type attend struct {
	at                tensor.Attention
	segments, samples []int32
	keySegments       []int32 // with Full
	q, k, v           []float64
}

// at returns where element i of a token's head starts.
func (a *attend) offset(sample, token, heads, head int) int {
	return ((sample*a.at.Seq+token)*heads + head) * a.at.HeadDim
}

// keys is how many keys query s may see.
func (a *attend) keys(s int) int {
	if a.at.Full {
		return a.at.Seq
	}
	return s + 1
}

// blind says that query s may not see key j for being in another document.
func (a *attend) blind(sample, s, j int) bool {
	keys := a.segments
	if a.at.Full {
		keys = a.keySegments
	}
	return a.segments != nil && a.segments[sample*a.at.Seq+s] != keys[sample*a.at.Seq+j]
}

// weights are the softmax of one head [Seq Seq], the same after dropout, and the log-sum-exp of rows.
func (a *attend) weights(sample, head int) (p, kept [][]float64, lse []float64) {
	kv := head / (a.at.Heads / a.at.KVHeads)
	for s := range a.at.Seq {
		row, drop := make([]float64, a.at.Seq), make([]float64, a.at.Seq)
		var sum, top float64 = 0, math.Inf(-1)
		for pass := range 2 {
			for j := range a.keys(s) {
				if a.blind(sample, s, j) {
					continue
				}
				var z float64
				for i := range a.at.HeadDim {
					z += a.q[a.offset(sample, s, a.at.Heads, head)+i] * a.k[a.offset(sample, j, a.at.KVHeads, kv)+i]
				}
				z /= math.Sqrt(float64(a.at.HeadDim))
				if pass == 0 {
					top = max(top, z)
					continue
				}
				row[j] = math.Exp(z - top)
				sum += row[j]
			}
		}
		for j := range row {
			if sum > 0 {
				row[j] /= sum
			}
			if !a.drops(sample, head, s, j) {
				drop[j] = row[j] / (1 - a.at.Rate)
			}
		}
		p, kept, lse = append(p, row), append(kept, drop), append(lse, top+math.Log(sum))
	}
	return p, kept, lse
}

func (a *attend) drops(sample, head, s, j int) bool {
	if a.at.Rate == 0 {
		return false
	}
	row, seq := int(a.samples[sample])*a.at.HeadsTotal+a.at.HeadOffset+head, max(a.at.Seq, a.at.SeqTotal)
	return dropped(a.at.Seed, (row*seq+s+a.at.QueryOffset)*seq+j+a.at.KeyOffset, a.at.Rate)
}

func (a *attend) forward() (out, lse []float64) {
	out = make([]float64, len(a.q))
	for sample := range a.at.Samples {
		for head := range a.at.Heads {
			kv := head / (a.at.Heads / a.at.KVHeads)
			_, kept, l := a.weights(sample, head)
			lse = append(lse, l...)
			for s := range a.at.Seq {
				for j, w := range kept[s] {
					for i := range a.at.HeadDim {
						out[a.offset(sample, s, a.at.Heads, head)+i] += w * a.v[a.offset(sample, j, a.at.KVHeads, kv)+i]
					}
				}
			}
		}
	}
	return out, lse
}

func (a *attend) backward(dout []float64) (dq, dk, dv []float64) {
	dq, dk, dv = make([]float64, len(a.q)), make([]float64, len(a.k)), make([]float64, len(a.v))
	root := math.Sqrt(float64(a.at.HeadDim))
	for sample := range a.at.Samples {
		for head := range a.at.Heads {
			kv := head / (a.at.Heads / a.at.KVHeads)
			p, kept, _ := a.weights(sample, head)
			for s := range a.at.Seq {
				qo := a.offset(sample, s, a.at.Heads, head)
				dp := make([]float64, a.keys(s))
				var mean float64
				for j := range dp {
					ko := a.offset(sample, j, a.at.KVHeads, kv)
					for i := range a.at.HeadDim {
						dv[ko+i] += kept[s][j] * dout[qo+i]
						dp[j] += dout[qo+i] * a.v[ko+i]
					}
					if p[s][j] > 0 {
						dp[j] *= kept[s][j] / p[s][j]
					}
					mean += p[s][j] * dp[j]
				}
				for j := range dp {
					ko := a.offset(sample, j, a.at.KVHeads, kv)
					dz := p[s][j] * (dp[j] - mean) / root
					for i := range a.at.HeadDim {
						dq[qo+i] += dz * a.k[ko+i]
						dk[ko+i] += dz * a.q[qo+i]
					}
				}
			}
		}
	}
	return dq, dk, dv
}
