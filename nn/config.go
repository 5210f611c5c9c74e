package nn

import (
	"errors"
	"fmt"
)

// Family is a kind of transformer.
type Family string

const (
	GPT2  Family = "gpt2"  // LayerNorm, learned positions, GELU, biases (Radford et al. 2019)
	Llama Family = "llama" // RMSNorm, rotary positions, SwiGLU, grouped-query attention (Touvron et al. 2023)
)

// Config is the shape of a model: the [model] section of a configuration.
type Config struct {
	Preset          string  `toml:"preset"` // a published model, or a Hugging Face config.json: what other keys do not say
	From            string  `toml:"from"`   // a folder of config.json and safetensors: its model, and training starts from its weights
	Family          Family  `toml:"family"`
	Layers          int     `toml:"layers"`           // L
	Width           int     `toml:"width"`            // D
	Heads           int     `toml:"heads"`            // H
	KVHeads         int     `toml:"kv_heads"`         // K; 0 means Heads
	HeadDim         int     `toml:"head_dim"`         // 0 means Width/Heads
	Hidden          int     `toml:"hidden"`           // F; 0 means 4 Width (gpt2) or 8/3 Width rounded up to 64 (llama)
	Vocab           int     `toml:"vocab"`            // V; 0 means the tokeniser's
	Sequence        int     `toml:"sequence"`         // S
	Positions       int     `toml:"positions"`        // of the longest sample that the model is for; 0 means Sequence. gpt2: rows of the learned table
	Tied            bool    `toml:"tied"`             // output matrix = embedding matrix
	Eps             float64 `toml:"eps"`              // of the norms; 0 means 1e-5
	QKVBias         bool    `toml:"qkv_bias"`         // llama: queries, keys and values have biases (Qwen2)
	QKNorm          bool    `toml:"qk_norm"`          // llama: every head's query and key is normalised before it is turned (Qwen3)
	RopeBase        float64 `toml:"rope_base"`        // 0 means 10000
	RopeScaling     string  `toml:"rope_scaling"`     // for samples longer than those of pre-training: "none", "linear", "llama3" or "yarn"
	RopeFactor      float64 `toml:"rope_factor"`      // how much longer
	RopeOriginal    int     `toml:"rope_original"`    // tokens of a sample in pre-training; llama3, yarn
	RopeLow         float64 `toml:"rope_low"`         // llama3: low_freq_factor, 0 means 1; yarn: beta_slow, 0 means 1
	RopeHigh        float64 `toml:"rope_high"`        // llama3: high_freq_factor, 0 means 4; yarn: beta_fast, 0 means 32
	RopeAttention   float64 `toml:"rope_attention"`   // yarn: queries and keys are multiplied by it; 0 means 0.1 ln(factor) + 1
	InitStd         float64 `toml:"init_std"`         // 0 means 0.02; residual projections get InitStd/sqrt(2L)
	Dropout         float64 `toml:"dropout"`          // embedding, residual and attention dropout rate
	Recompute       string  `toml:"recompute"`        // "none", "selective" (attention) or "full"
	RecomputeLayers int     `toml:"recompute_layers"` // the first so many blocks are recomputed; 0 means all
	Experts         int     `toml:"experts"`          // E: feed-forward experts a block; 0 means one plain feed-forward layer
	TopK            int     `toml:"top_k"`            // experts that a token takes; 0 means 2
	CapacityFactor  float64 `toml:"capacity_factor"`  // an expert takes at most this times S k / E tokens of a sample; 0 means all
	AuxLoss         float64 `toml:"aux_loss"`         // weight of the load-balancing loss

	LoRARank    int      `toml:"lora_rank"`    // r of low-rank adapters, with which nothing else learns; 0 means none
	LoRAAlpha   float64  `toml:"lora_alpha"`   // they are scaled by alpha / r; 0 means 2 r
	LoRATargets []string `toml:"lora_targets"` // matrices that have one; empty means q and v
}

// Resolved fills in the values that 0 stands for, except the vocabulary.
func (c Config) Resolved() Config {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Width / c.Heads
	}
	if c.Positions == 0 {
		c.Positions = c.Sequence
	}
	if c.Hidden == 0 {
		c.Hidden = 4 * c.Width
		if c.Family == Llama { // a third matrix gates: 2/3 as wide for as many weights (Shazeer 2020, §3)
			c.Hidden = (c.Width*8/3 + 63) / 64 * 64
		}
	}
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	if c.RopeBase == 0 {
		c.RopeBase = 10000
	}
	c = c.resolvedRope()
	if c.InitStd == 0 {
		c.InitStd = 0.02
	}
	if c.Experts > 0 && c.TopK == 0 {
		c.TopK = min(2, c.Experts)
	}
	if c.LoRARank > 0 {
		if c.LoRAAlpha == 0 {
			c.LoRAAlpha = float64(2 * c.LoRARank)
		}
		if len(c.LoRATargets) == 0 {
			c.LoRATargets = []string{"q", "v"}
		}
	}
	if c.Recompute == "" {
		c.Recompute = RecomputeNone
	}
	return c
}

// Validate reports what keeps a resolved configuration from being built.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(c.Family == GPT2 || c.Family == Llama, "model.family = %q: want %q or %q", c.Family, GPT2, Llama)
	for _, f := range []struct {
		name string
		v    int
	}{
		{"layers", c.Layers}, {"width", c.Width}, {"heads", c.Heads}, {"kv_heads", c.KVHeads}, {"head_dim", c.HeadDim},
		{"hidden", c.Hidden}, {"vocab", c.Vocab}, {"sequence", c.Sequence},
	} {
		need(f.v > 0, "model.%s = %d: want 1 or more", f.name, f.v)
	}
	need(c.Family != GPT2 || c.Positions >= c.Sequence, "model.positions = %d: want model.sequence %d or more", c.Positions, c.Sequence)
	need(c.KVHeads <= 0 || c.Heads%c.KVHeads == 0, "model.kv_heads = %d: heads %d is not a multiple", c.KVHeads, c.Heads)
	need(c.Family != Llama || c.HeadDim%2 == 0, "model.head_dim = %d: rotary positions turn pairs", c.HeadDim)
	need(c.Family == Llama || !c.QKVBias && !c.QKNorm, "model.qkv_bias, model.qk_norm: family %q has biases everywhere and no norm of heads", c.Family)
	if m := c.CheckRope(); m != nil {
		errs = append(errs, m)
	}
	need(c.Experts >= 0 && c.TopK >= 0 && c.TopK <= c.Experts, "model.top_k = %d: want 0 to experts %d", c.TopK, c.Experts)
	need(c.Dropout >= 0 && c.Dropout < 1, "model.dropout = %g: want 0 or more and below 1", c.Dropout)
	return errors.Join(errs...)
}
