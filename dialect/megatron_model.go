package dialect

import (
	"fmt"

	"triax/nn"
)

// model reads the [model] section. Two families exist here; flags that mix them are refused by name.
func (m *megatronArgs) model() {
	c := &m.c.Model
	*c = nn.Config{Recompute: nn.RecomputeNone, Family: nn.GPT2}
	rope := m.text("--position-embedding-type", "learned_absolute", "model.family") == "rope" || m.on("--use-rotary-position-embeddings", "model.family")
	m.on("--no-position-embedding", "model.family")
	rms := m.text("--normalization", "LayerNorm", "model.family") == "RMSNorm"
	gated := m.on("--swiglu", "model.family")
	bare := m.on("--disable-bias-linear", "model.family")
	if votes := count(rope, rms, gated, bare); votes == 4 {
		c.Family = nn.Llama
	} else if votes != 0 {
		m.refuse("--position-embedding-type, --normalization, --swiglu, --disable-bias-linear", fmt.Sprintf("rope %v, RMSNorm %v, swiglu %v, no biases %v", rope, rms, gated, bare),
			"a model is of the GPT-2 family (none of them) or of the Llama family (all of them)", "use all four or none")
	}
	if share := m.float("--rotary-percent", 1, "whole heads are turned"); share != 1 {
		m.refuse("--rotary-percent", fmt.Sprint(share), "rotary positions turn whole heads here", "use 1.0")
	}
	if rope {
		c.RopeBase = m.float("--rotary-base", 10000, "model.rope_base")
	} else if m.has("--rotary-base") {
		m.unused("--rotary-base", "", "positions are learned")
		m.read["--rotary-base"] = true
	}
	c.Layers = m.int("--num-layers", 0, "model.layers")
	c.Width = m.int("--hidden-size", 0, "model.width")
	c.Heads = m.int("--num-attention-heads", 0, "model.heads")
	c.HeadDim = m.int("--kv-channels", 0, "model.head_dim")
	if groups := m.int("--num-query-groups", 0, "model.kv_heads"); m.on("--group-query-attention", "model.kv_heads") {
		c.KVHeads = groups
	}
	c.Hidden = m.int("--ffn-hidden-size", 0, "model.hidden")
	if c.Hidden == 0 {
		c.Hidden = 4 * c.Width
		if gated { // Megatron rounds down to 64
			c.Hidden = 4 * c.Width * 2 / 3 / 64 * 64
		}
	}
	c.Eps = m.float("--norm-epsilon", m.float("--layernorm-epsilon", 1e-5, "model.eps"), "model.eps")
	c.InitStd = m.float("--init-method-std", 0.02, "model.init_std")
	c.Tied = !m.on("--untie-embeddings-and-output-weights", "model.tied = false")
	m.positions(rope)
	m.dropout()
	m.experts()
	m.recompute()
}

// positions: learned ones are parameters, so there must be as many here as there.
func (m *megatronArgs) positions(rope bool) {
	c := &m.c.Model
	c.Sequence = m.int("--seq-length", 0, "model.sequence")
	longest := m.int("--max-position-embeddings", c.Sequence, "at least model.sequence")
	if !rope && longest != c.Sequence {
		m.refuse("--max-position-embeddings", fmt.Sprint(longest), fmt.Sprintf("learned positions are as many as a sample has tokens, %d", c.Sequence), fmt.Sprintf("use %d", c.Sequence))
	}
}

func (m *megatronArgs) dropout() {
	attention, hidden := m.float("--attention-dropout", 0.1, "model.dropout"), m.float("--hidden-dropout", 0.1, "model.dropout")
	if attention != hidden {
		m.refuse("--attention-dropout", fmt.Sprint(attention), fmt.Sprintf("one rate serves attention, residuals and embedding; --hidden-dropout is %g", hidden), fmt.Sprintf("use %g for both", hidden))
	}
	m.c.Model.Dropout = hidden
}

func (m *megatronArgs) experts() {
	c := &m.c.Model
	if c.Experts = m.int("--num-experts", 0, "model.experts"); c.Experts == 0 {
		return
	}
	c.TopK = m.int("--moe-router-topk", 2, "model.top_k")
	c.CapacityFactor = m.float("--moe-expert-capacity-factor", 0, "model.capacity_factor")
	if width := m.int("--moe-ffn-hidden-size", c.Hidden, "model.hidden"); width != c.Hidden {
		c.Hidden = width // there are no other feed-forward layers
	}
	coefficient := m.float("--moe-aux-loss-coeff", 0, "model.aux_loss")
	switch kind := m.text("--moe-router-load-balancing-type", "aux_loss", "model.aux_loss"); kind {
	case "aux_loss":
		c.AuxLoss = coefficient
	case "none":
	default:
		m.refuse("--moe-router-load-balancing-type", kind, "experts are balanced by the auxiliary loss or not at all", "use aux_loss or none")
	}
}

func (m *megatronArgs) recompute() {
	c := &m.c.Model
	if m.on("--recompute-activations", `model.recompute = "selective"`) {
		c.Recompute = nn.RecomputeSelective
		m.differs("--recompute-activations", "", "there the scores alone are made again, here the attention half of each block")
	}
	if modules := m.text("--recompute-modules", "core_attn", "model.recompute"); modules != "core_attn" {
		m.refuse("--recompute-modules", modules, "selective recompute covers attention", "use core_attn")
	}
	switch kind := m.text("--recompute-granularity", "", "model.recompute"); kind {
	case "":
	case "selective":
		c.Recompute = nn.RecomputeSelective
		m.differs("--recompute-granularity", kind, "there the scores alone are made again, here the attention half of each block")
	case "full":
		c.Recompute = nn.RecomputeFull
	default:
		m.refuse("--recompute-granularity", kind, "want full or selective", "use full")
	}
	method := m.text("--recompute-method", m.text("--activations-checkpoint-method", "", `model.recompute = "full"`), "model.recompute")
	if m.has("--activations-checkpoint-method") {
		c.Recompute = nn.RecomputeFull
	}
	n := m.int("--recompute-num-layers", 1, "model.recompute_layers")
	switch {
	case c.Recompute != nn.RecomputeFull || method == "":
	case method == "uniform" && n != 1:
		m.refuse("--recompute-num-layers", fmt.Sprint(n), "blocks are recomputed one by one", "use 1")
	case method == "block": // the first n of each pipeline stage; here the first of the model
		pp := m.degree("--pipeline-model-parallel-size", 1, "mesh.pp")
		if pp > 1 && n*pp != c.Layers {
			m.refuse("--recompute-method", method, "the first blocks of each stage are recomputed there, the first of the model here", "use uniform, or selective")
		}
		c.RecomputeLayers = n * pp
	}
}

func count(list ...bool) (n int) {
	for _, x := range list {
		if x {
			n++
		}
	}
	return n
}
