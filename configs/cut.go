package configs

import (
	"fmt"
	"sort"
	"strings"

	"triax/schedule"
)

// checkCuts runs the rules that join a model, a batch and a mesh.
func (c *Config) checkCuts() (ps Problems) {
	ps = append(ps, c.checkPipelineCut()...)
	ps = append(ps, c.checkTensorCut()...)
	ps = append(ps, c.checkBatchCut()...)
	ps.add(c.Optim.Warmup > c.Train.Steps, "optim.warmup", c.Optim.Warmup,
		fmt.Sprintf("warm-up is longer than the run of %d steps", c.Train.Steps), fmt.Sprintf("use %d", c.Train.Steps/10))
	ps.add(c.Mesh.CP > 1 && c.Model.Sequence%(2*c.Mesh.CP) != 0, "model.sequence", c.Model.Sequence,
		fmt.Sprintf("mesh.cp = %d cuts a sample into %d equal stretches", c.Mesh.CP, 2*c.Mesh.CP),
		"use "+either(multiplesNear(2*c.Mesh.CP, c.Model.Sequence)))
	ps = append(ps, c.checkExperts()...)
	ps.add(c.Train.EvalBatches > 0 && c.Train.EvalEvery > 0 && c.Data.HeldOut == 0, "data.held_out", c.Data.HeldOut,
		"evaluation needs held-out tokens", "use 0.02, or train.eval_batches = 0")
	return ps
}

func (c *Config) checkPipelineCut() (ps Problems) {
	layers, pp := c.Model.Layers, c.Mesh.PP
	chunks := max(1, c.Pipeline.Chunks)
	if c.Pipeline.File == "" {
		p := c.Pipeline
		chunks = schedule.ChunksOf(p.Schedule, p.Chunks)
		if err := schedule.Check(p.Schedule, pp, p.Microbatches, p.Chunks); err != nil {
			ps.add(true, "pipeline", fmt.Sprintf("%s, chunks %d, microbatches %d", p.Schedule, p.Chunks, p.Microbatches),
				strings.ReplaceAll(strings.ReplaceAll(err.Error(), "schedule: ", ""), "\n", "; "), "chunks = 0 takes the schedule's own number")
		}
	}
	stages := pp * chunks
	what := "pipeline ranks (mesh.pp)"
	if chunks > 1 {
		what = fmt.Sprintf("virtual stages (mesh.pp %d x pipeline.chunks %d)", pp, chunks)
	}
	ps.add(stages > layers, "mesh.pp", pp, fmt.Sprintf("%d %s, but the model has %d layers; each needs one", stages, what, layers),
		fmt.Sprintf("use mesh.pp = %d, or model.layers = %d", max(1, layers/chunks), stages))
	if list := c.Pipeline.Layers; len(list) > 0 {
		sum := 0
		for _, n := range list {
			sum += n
		}
		ps.add(len(list) != stages, "pipeline.layers", list, fmt.Sprintf("%d entries for %d virtual stages", len(list), stages),
			fmt.Sprintf("leave it empty, or write %d numbers that add up to %d", stages, layers))
		ps.add(len(list) == stages && sum != layers, "pipeline.layers", list, fmt.Sprintf("adds up to %d, but model.layers = %d", sum, layers),
			"leave it empty to cut evenly")
	}
	return ps
}

func (c *Config) checkTensorCut() (ps Problems) {
	t, m := c.Mesh.TP, Resolved(c).Model
	if t == 1 {
		return nil
	}
	ps.add(m.Heads%t != 0, "mesh.tp", t, fmt.Sprintf("model.heads = %d is not a multiple of it", m.Heads), "use "+either(divisorsNear(m.Heads, t)))
	ps.add(m.Hidden%t != 0, "mesh.tp", t, fmt.Sprintf("the feed-forward width model.hidden = %d is not a multiple of it", m.Hidden),
		fmt.Sprintf("use %s, or model.hidden = %d", either(divisorsNear(m.Hidden, t)), (m.Hidden/t+1)*t))
	ps.add(m.KVHeads != m.Heads && m.KVHeads%t != 0 && t%m.KVHeads != 0, "mesh.tp", t,
		fmt.Sprintf("model.kv_heads = %d neither divides it nor is a multiple of it", m.KVHeads), "use "+either(divisorsNear(m.KVHeads, t)))
	if c.Mesh.SequenceParallel {
		samples := max(1, c.Train.Batch/(c.Mesh.Replicas()*c.Pipeline.Microbatches))
		tokens := samples * m.Sequence / c.Mesh.CP
		ps.add(tokens%t != 0, "model.sequence", m.Sequence,
			fmt.Sprintf("sequence parallelism shares out the %d tokens of a microbatch (%d samples) over mesh.tp = %d", tokens, samples, t),
			fmt.Sprintf("use %d", (m.Sequence/t+1)*t))
	}
	return ps
}

func (c *Config) checkExperts() (ps Problems) {
	m, e := Resolved(c).Model, c.Mesh.EP
	if m.Experts == 0 {
		ps.add(e > 1, "mesh.ep", e, "the model has no experts to cut", "use 1, or set model.experts")
		ps.add(m.TopK > 0, "model.top_k", m.TopK, "the model has no experts", "use 0, or set model.experts")
		return ps
	}
	ps.add(m.Experts%e != 0, "mesh.ep", e, fmt.Sprintf("model.experts = %d is not a multiple of it", m.Experts), "use "+either(divisorsNear(m.Experts, e)))
	ps.add(m.TopK > m.Experts, "model.top_k", m.TopK, fmt.Sprintf("a token takes that many of model.experts = %d", m.Experts), fmt.Sprintf("use %d", m.Experts))
	ps.add(m.CapacityFactor > 0 && (c.Mesh.CP > 1 || c.Mesh.SequenceParallel), "model.capacity_factor", m.CapacityFactor,
		"capacity is counted sample by sample, which context and sequence parallelism cut", "use 0, or mesh.cp = 1 and mesh.sequence_parallel = false")
	return ps
}

// checkBatchCut asks that every rank gets the same number of samples in every microbatch.
func (c *Config) checkBatchCut() (ps Problems) {
	parts := c.Mesh.Replicas() * c.Pipeline.Microbatches
	b := c.Train.Batch
	ps.add(b%parts != 0, "train.batch", b,
		fmt.Sprintf("not a multiple of %d = replicas %d x pipeline.microbatches %d", parts, c.Mesh.Replicas(), c.Pipeline.Microbatches),
		"use "+either(multiplesNear(parts, b)))
	return ps
}

// divisorsNear lists the divisors of n next to d on both sides.
func divisorsNear(n, d int) []int {
	below, above := 0, 0
	for i := 1; i <= n; i++ {
		if n%i == 0 {
			if i <= d {
				below = i
			} else {
				above = i
				break
			}
		}
	}
	return positive(below, above)
}

// multiplesNear lists the multiples of n next to v on both sides.
func multiplesNear(n, v int) []int { return positive(v/n*n, (v/n+1)*n) }

func positive(list ...int) []int {
	var out []int
	for _, x := range list {
		if x > 0 {
			out = append(out, x)
		}
	}
	sort.Ints(out)
	return out
}

func either(list []int) string {
	var s []string
	for _, x := range list {
		s = append(s, fmt.Sprint(x))
	}
	return strings.Join(s, " or ")
}
