package nn

import (
	"cmp"
	"math"
	"slices"

	"triax/tensor"
)

// route is where a microbatch's tokens go: decided on the host, from the router's logits.
type route struct {
	probs  []float64 // [T' E] softmax of the logits
	tokens []int32   // by slot: slots are ordered by expert, then token
	expert []int32   // by slot
	gate   []float64 // by slot
	counts []int     // slots of each expert
	aux    []float64 // [samples E]: gradient of the load-balancing loss by each token's probability
}

// newRoute softmaxes the logits [T' E] and sends every token to its k largest experts. With k > 1 the gates are the chosen
// probabilities over their sum (Jiang et al. 2024, §2.1), with k = 1 the probability itself (Fedus et al. 2022, §2.1).
func newRoute(logits []float64, experts, k int) *route {
	rows := len(logits) / experts
	r := &route{probs: logits, counts: make([]int, experts)}
	byExpert := make([][]int32, experts)
	gates := make([][]float64, experts)
	order := make([]int, experts)
	for t := range rows {
		p := r.probs[t*experts : (t+1)*experts]
		softmax(p)
		byProbability(order, p)
		sum := 1.0
		if k > 1 {
			sum = 0
			for _, e := range order[:k] {
				sum += p[e]
			}
		}
		for _, e := range order[:k] {
			byExpert[e] = append(byExpert[e], int32(t))
			gates[e] = append(gates[e], p[e]/sum)
		}
	}
	for e, list := range byExpert {
		r.counts[e] = len(list)
		r.tokens = append(r.tokens, list...)
		r.gate = append(r.gate, gates[e]...)
		for range list {
			r.expert = append(r.expert, int32(e))
		}
	}
	return r
}

// byProbability orders the experts by falling probability, ties by number.
func byProbability(order []int, p []float64) {
	for e := range order {
		order[e] = e
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
}

func softmax(p []float64) {
	top, sum := slices.Max(p), 0.0
	for i, x := range p {
		p[i] = math.Exp(x - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
}

// limit drops what goes beyond an expert's capacity in a sample: its later tokens (Fedus et al. 2022, §2.2, by sample so
// that it does not depend on how samples are spread over ranks).
func (r *route) limit(rowSample []int32, samples, capacity int) {
	keep := 0
	taken := make([]int, samples*len(r.counts))
	clear(r.counts)
	for i, t := range r.tokens {
		e := r.expert[i]
		at := int(rowSample[t])*len(r.counts) + int(e)
		if taken[at]++; taken[at] > capacity {
			continue
		}
		r.tokens[keep], r.expert[keep], r.gate[keep] = t, e, r.gate[i]
		r.counts[e]++
		keep++
	}
	r.tokens, r.expert, r.gate = r.tokens[:keep], r.expert[:keep], r.gate[:keep]
}

// backward turns the gradients of the gates, by slot, into those of the logits [T' E].
func (r *route) backward(dgate []float64, k int, rowSample []int32) []float64 {
	experts := len(r.counts)
	rows := len(r.probs) / experts
	d := make([]float64, len(r.probs)) // of the probabilities
	if r.aux != nil {
		for t := range rows {
			copy(d[t*experts:(t+1)*experts], r.aux[int(rowSample[t])*experts:])
		}
	}
	if k > 1 {
		// gate = p / sum of the chosen p. Dropped slots count in the sum: their gates were taken before the drop.
		chosen := r.chosenSums(k)
		dot := make([]float64, rows)
		for i, t := range r.tokens {
			dot[t] += dgate[i] * r.gate[i]
		}
		for i, t := range r.tokens {
			d[int(t)*experts+int(r.expert[i])] += dgate[i] / chosen.sum[t]
		}
		for t := range rows {
			for _, e := range chosen.experts[t*k : (t+1)*k] {
				d[t*experts+e] -= dot[t] / chosen.sum[t]
			}
		}
	} else {
		for i, t := range r.tokens {
			d[int(t)*experts+int(r.expert[i])] += dgate[i]
		}
	}
	for t := range rows {
		p, g := r.probs[t*experts:(t+1)*experts], d[t*experts:(t+1)*experts]
		mean := 0.0
		for e := range p {
			mean += p[e] * g[e]
		}
		for e := range p {
			g[e] = p[e] * (g[e] - mean)
		}
	}
	return d
}

// chosen is each token's k experts and the sum of their probabilities.
type chosen struct {
	experts []int
	sum     []float64
}

func (r *route) chosenSums(k int) chosen {
	experts := len(r.counts)
	rows := len(r.probs) / experts
	c := chosen{sum: make([]float64, rows)}
	order := make([]int, experts)
	for t := range rows {
		p := r.probs[t*experts : (t+1)*experts]
		byProbability(order, p)
		for _, e := range order[:k] {
			c.experts = append(c.experts, e)
			c.sum[t] += p[e]
		}
	}
	return c
}

// balance counts, over whole samples, how many tokens take each expert, and returns this rank's share of the loss
// weight * mean over samples of E / (k S^2) * sum over experts of count * sum of probabilities (Fedus et al. 2022, §2.2, by sample
// as in DeepSeek-AI 2024, §2.1.2). It is 1 for each sample when tokens spread evenly.
func (r *route) balance(ctx *Ctx, ranks Experts, cfg Config, rowSample []int32) (loss float64, err error) {
	experts := len(r.counts)
	b := ctx.Batch
	counts := make([]float64, b.Samples*experts)
	for i, t := range r.tokens {
		counts[int(rowSample[t])*experts+int(r.expert[i])]++
	}
	shared := ctx.Dev.Heap().New(tensor.Workspace, tensor.F64, len(counts))
	defer shared.Release()
	ctx.Dev.Upload(shared, counts)
	if err := ranks.SumSamples(ctx, shared); err != nil {
		return 0, err
	}
	ctx.Dev.Download(counts, shared)
	s := float64(b.SampleSeq)
	scale := cfg.AuxLoss * b.SampleScale * float64(experts) / (float64(cfg.TopK) * s * s)
	for i := range counts {
		counts[i] *= scale
	}
	r.aux = counts
	for t := range len(r.probs) / experts {
		for e, p := range r.probs[t*experts : (t+1)*experts] {
			loss += p * counts[int(rowSample[t])*experts+e]
		}
	}
	return loss, nil
}
