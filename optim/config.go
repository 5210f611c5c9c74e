package optim

// Config is the [optim] section of a configuration.
type Config struct {
	Rule        string    `toml:"rule"`         // "adamw" or "sgd"
	LR          float64   `toml:"lr"`           // the highest learning rate
	Betas       []float64 `toml:"betas"`        // AdamW's two decay rates; empty means 0.9, 0.95
	Eps         float64   `toml:"eps"`          // AdamW's; 0 means 1e-8
	WeightDecay float64   `toml:"weight_decay"` // of parameters that take decay: matrices, not norms and biases
	Momentum    float64   `toml:"momentum"`     // SGD's; 0 means none, and no state
	Clip        float64   `toml:"clip"`         // bound on the global gradient norm; 0 means none
	Curve       string    `toml:"curve"`        // "constant", "linear" or "cosine"
	Warmup      int       `toml:"warmup"`       // steps of linear rise to LR
	MinLR       float64   `toml:"min_lr"`       // where the linear and cosine curves end
}

// Rules and Curves list the names a configuration may use.
var (
	Rules  = []string{"adamw", "sgd"}
	Curves = []string{"constant", "linear", "cosine"}
)

// Default is AdamW with the constants that GPT-2 and Llama class models are trained with
// (Touvron et al. 2023, §2.3), at a constant rate.
func Default() Config {
	return Config{Rule: "adamw", LR: 3e-4, Betas: []float64{0.9, 0.95}, Eps: 1e-8, WeightDecay: 0.1, Clip: 1, Curve: "constant"}
}
