package nn

// Family is a kind of transformer.
type Family string

const (
	GPT2  Family = "gpt2"  // LayerNorm, learned positions, GELU, biases (Radford et al. 2019)
	Llama Family = "llama" // RMSNorm, rotary positions, SwiGLU, grouped-query attention (Touvron et al. 2023)
)

// Config is the shape of a model: the [model] section of a configuration.
type Config struct {
	Family    Family  `toml:"family"`
	Layers    int     `toml:"layers"`    // L
	Width     int     `toml:"width"`     // D
	Heads     int     `toml:"heads"`     // H
	KVHeads   int     `toml:"kv_heads"`  // K; 0 means Heads
	HeadDim   int     `toml:"head_dim"`  // 0 means Width/Heads
	Hidden    int     `toml:"hidden"`    // F; 0 means 4 Width (gpt2) or 8/3 Width rounded up to 64 (llama)
	Vocab     int     `toml:"vocab"`     // V; 0 means the tokeniser's
	Sequence  int     `toml:"sequence"`  // S
	Tied      bool    `toml:"tied"`      // output matrix = embedding matrix
	Eps       float64 `toml:"eps"`       // of the norms; 0 means 1e-5
	RopeBase  float64 `toml:"rope_base"` // 0 means 10000
	InitStd   float64 `toml:"init_std"`  // 0 means 0.02; residual projections get InitStd/sqrt(2L)
	Dropout   float64 `toml:"dropout"`   // embedding, residual and attention dropout rate
	Recompute string  `toml:"recompute"` // "none", "selective" (attention) or "full"
}
