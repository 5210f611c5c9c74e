package plan

import (
	"strings"

	"triax/nn"
	"triax/schedule"
)

// MegatronCore is a runtime whose memory can be planned beside this program's own (""): Megatron-Core with Transformer Engine, whose layers keep other tensors.
const MegatronCore = "megatron-core"

// megatronLayer is the bytes that a transformer layer of Megatron-Core keeps for backward, for a microbatch of so many tokens on a rank: inputs and outputs of
// both norms, queries, keys, values and the heads' output, input and output of the activation (Korthikanti et al. 2022, §4.1 for what is kept; tiled
// attention keeps one number a row in place of the scores). What a tensor rank keeps whole without sequence parallelism is not divided.
func megatronLayer(m nn.Config, tokens, t float64, sequence bool, cp int, keptScores float64) float64 {
	h, f := float64(m.Width), float64(m.Hidden)
	kv := h * float64(m.KVHeads) / float64(m.Heads)
	whole, split := 8*h, 4*h+4*kv+4*float64(m.Heads)+keptScores
	if m.Family == nn.Llama {
		split += 6 * f // gate and up, and their product
	} else {
		split += 4 * f
	}
	if m.Dropout > 0 {
		whole += 2 * h // masks of a byte
	}
	if cp > 1 { // the ring keeps its own copy of the heads' output
		split += 2 * h
	}
	if sequence {
		whole /= t
	}
	if m.Recompute == nn.RecomputeFull {
		return tokens * whole / 4 // the layer's input
	}
	return tokens * (whole + split/t)
}

// megatronMemory is the allocator's peak of pipeline rank r under Megatron-Core: 2-byte weights, 4-byte gradients kept through the step, states of a (sharded)
// optimizer, activations of the microbatches in flight, and what is only there for a moment. Fused weight gradients hand autograd an unused tensor
// of the weight's shape: Transformer Engine keeps one of each shape of a layer, the row-parallel ones exist twice, the logits' product has its own.
func (p *paper) megatronMemory(c Cluster, r int) Memory {
	l, m := p.ranks[r].layout, p.cfg.Model
	t := float64(p.cfg.Mesh.TP)
	samples := p.cfg.Train.Batch / (p.cfg.Mesh.Replicas() * max(1, p.cfg.Pipeline.Microbatches))
	tokens := float64(samples * (m.Sequence / p.cfg.Mesh.CP))
	h, f, v := float64(m.Width), float64(m.Hidden), float64(m.Vocab)
	kv := h * float64(m.KVHeads) / float64(m.Heads)
	scores := 0.0
	if c.ScorePasses > 0 && !c.CoreAgain { // softmax's output, dropout's mask and output: 5 bytes a score
		scores = 5 * float64(m.Heads) * float64(m.Sequence)
	}
	sp := p.cfg.Mesh.SequenceParallel
	layer := megatronLayer(m, tokens, t, sp, p.cfg.Mesh.CP, scores)
	kept := make([]float64, p.sched.Stages)
	for i, st := range p.stages {
		kept[i] = float64(blocks(st.layers)) * layer
	}
	out := Memory{
		Weights: float64(l.weights) * 2, Gradients: float64(l.gradients) * float64(c.GradientBytes), States: float64(l.states) * float64(c.StateBytes),
	}
	held := 0.0
	for _, o := range p.sched.Ranks[r] {
		switch o.Kind {
		case schedule.F:
			held += kept[o.Stage]
		case schedule.B, schedule.W:
			held -= kept[o.Stage]
		}
		out.Activations = max(out.Activations, held)
	}
	up := 1.0
	if m.Family == nn.Llama {
		up = 2
	}
	row := 2 * (f*h + h*h) / t
	unused := 2 * (h*(h+2*kv) + up*f*h) / t
	moment := row
	if m.Recompute == nn.RecomputeFull { // one layer made again
		again := m
		again.Recompute = nn.RecomputeNone
		moment += megatronLayer(again, tokens, t, sp, p.cfg.Mesh.CP, scores)
	}
	if p.sched.Place[p.sched.Stages-1] == r {
		head := 2 * v * h / t
		logits := 2 * tokens * v / t
		if c.LooseLoss {
			logits *= 3 // and in fp32
		}
		moment = head + max(moment, logits)
	}
	if t > 1 { // whole inputs and gradients, gathered
		moment += 4 * 2 * tokens * h
	}
	out.Buffers = row + unused + moment
	sum := out.Weights + out.Gradients + out.States + out.Activations + out.Buffers
	out.Peak = sum
	return out
}

// blocks counts transformer layers.
func blocks(layers []Layer) (n int) {
	for _, l := range layers {
		if strings.HasPrefix(l.Name, "blocks.") {
			n++
		}
	}
	return n
}
