package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"triax/nn"
)

// maxJSON bounds config.json and index files.
const maxJSON = 16 << 20

// Config is what a config.json says that decides what a model computes. Absent keys have the values that transformers gives them.
type Config struct {
	ModelType    string   `json:"model_type"`
	Architecture []string `json:"architectures"`
	Vocab        int      `json:"vocab_size"`
	Tied         *bool    `json:"tie_word_embeddings"`
	Init         *float64 `json:"initializer_range"`
	DType        string   `json:"dtype"`
	TorchDType   string   `json:"torch_dtype"` // its older name
	Quantization any      `json:"quantization_config"`

	// gpt2
	NLayer       int      `json:"n_layer"`
	NEmbd        int      `json:"n_embd"`
	NHead        int      `json:"n_head"`
	NPositions   int      `json:"n_positions"`
	NInner       *int     `json:"n_inner"`
	NormEps      *float64 `json:"layer_norm_epsilon"`
	Activation   *string  `json:"activation_function"`
	ScaleWeights *bool    `json:"scale_attn_weights"`
	ScaleByLayer bool     `json:"scale_attn_by_inverse_layer_idx"`
	CrossAttend  bool     `json:"add_cross_attention"`

	// llama and its kin
	Layers        int      `json:"num_hidden_layers"`
	Hidden        int      `json:"hidden_size"`
	Heads         int      `json:"num_attention_heads"`
	KV            *int     `json:"num_key_value_heads"`
	HeadDim       *int     `json:"head_dim"`
	Inner         int      `json:"intermediate_size"`
	Positions     int      `json:"max_position_embeddings"`
	RMSEps        *float64 `json:"rms_norm_eps"`
	Theta         *float64 `json:"rope_theta"`
	Scaling       *Rope    `json:"rope_scaling"`
	RopeParams    *Rope    `json:"rope_parameters"` // theta and scaling in newer files
	HiddenAct     *string  `json:"hidden_act"`
	AttentionBias bool     `json:"attention_bias"`
	MLPBias       bool     `json:"mlp_bias"`
	Partial       *float64 `json:"partial_rotary_factor"`
	Window        *int     `json:"sliding_window"`
	UseWindow     *bool    `json:"use_sliding_window"`
	LayerTypes    []string `json:"layer_types"`
	Experts       int      `json:"num_local_experts"` // mixtral
	PerToken      int      `json:"num_experts_per_tok"`
}

// Rope is the frequencies' scaling in a config.json.
type Rope struct {
	Type      string   `json:"rope_type"`
	OldType   string   `json:"type"`
	Theta     *float64 `json:"rope_theta"`
	Factor    float64  `json:"factor"`
	Low       float64  `json:"low_freq_factor"`
	High      float64  `json:"high_freq_factor"`
	Original  int      `json:"original_max_position_embeddings"`
	Attention *float64 `json:"attention_factor"`
	BetaFast  float64  `json:"beta_fast"`
	BetaSlow  float64  `json:"beta_slow"`
	MScale    float64  `json:"mscale"`
	MScaleAll float64  `json:"mscale_all_dim"`
	Truncate  *bool    `json:"truncate"`
	Partial   *float64 `json:"partial_rotary_factor"`
}

// ReadConfig reads a config.json, or the one in a folder.
func ReadConfig(path string) (Config, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	text, err := readBounded(path)
	if err != nil {
		return Config{}, err
	}
	return ParseConfig(text)
}

// ParseConfig reads the text of a config.json. Keys that it does not know are none of those that change what these models compute.
func ParseConfig(text []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("not a config.json: %w", err)
	}
	return c, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err == nil && len(text) > maxJSON {
		err = fmt.Errorf("%s: more than %d bytes", path, maxJSON)
	}
	return text, err
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// Shape is the model as a configuration, for planning and training. It reads mixtral too, whose weights are not imported.
func (c Config) Shape() (nn.Config, error) {
	var m nn.Config
	switch c.ModelType {
	case "gpt2":
		m = nn.Config{
			Family: nn.GPT2, Layers: c.NLayer, Width: c.NEmbd, Heads: c.NHead, Hidden: or(c.NInner, 0), Sequence: c.NPositions,
			Eps: or(c.NormEps, 1e-5), Tied: or(c.Tied, true),
		}
	case "llama", "mistral", "qwen2", "qwen3", "mixtral":
		m = nn.Config{
			Family: nn.Llama, Layers: c.Layers, Width: c.Hidden, Heads: c.Heads, HeadDim: or(c.HeadDim, 0), Hidden: c.Inner, Sequence: c.Positions,
			Eps: or(c.RMSEps, 1e-6), Tied: or(c.Tied, false), RopeBase: or(c.Theta, 10000), QKVBias: c.ModelType == "qwen2", QKNorm: c.ModelType == "qwen3",
		}
		if m.KVHeads = or(c.KV, c.Heads); c.KV == nil && c.ModelType != "llama" {
			return m, fmt.Errorf("num_key_value_heads: missing, and %s does not derive it", c.ModelType)
		}
		if c.HeadDim == nil && c.ModelType == "qwen3" {
			m.HeadDim = 128 // the class's default, whatever the width
		}
		if c.ModelType == "mixtral" {
			m.Experts, m.TopK = c.Experts, c.PerToken
		}
		if err := c.rope(&m); err != nil {
			return m, err
		}
	default:
		return m, fmt.Errorf("model_type %q: this reads gpt2, llama, mistral, qwen2, qwen3, and mixtral on paper", c.ModelType)
	}
	m.Vocab, m.Positions, m.InitStd = c.Vocab, m.Sequence, or(c.Init, 0.02)
	return m, nil
}

func (c Config) rope(m *nn.Config) error {
	r := c.Scaling
	if c.RopeParams != nil {
		r = c.RopeParams
	}
	if r == nil {
		return nil
	}
	if r.Theta != nil {
		m.RopeBase = *r.Theta
	}
	kind := r.Type
	if kind == "" {
		kind = r.OldType
	}
	original := r.Original
	if original == 0 {
		original = c.Positions
	}
	switch kind {
	case "", "default":
	case "linear":
		m.RopeScaling, m.RopeFactor = nn.RopeLinear, r.Factor
	case "llama3":
		m.RopeScaling, m.RopeFactor, m.RopeOriginal, m.RopeLow, m.RopeHigh = nn.RopeLlama3, r.Factor, original, r.Low, r.High
	case "yarn":
		m.RopeScaling, m.RopeFactor, m.RopeOriginal, m.RopeLow, m.RopeHigh = nn.RopeYaRN, r.Factor, original, r.BetaSlow, r.BetaFast
		if m.RopeAttention = or(r.Attention, 0); m.RopeAttention == 0 && r.MScale != 0 && r.MScaleAll != 0 && r.Factor > 1 {
			m.RopeAttention = (0.1*r.MScale*math.Log(r.Factor) + 1) / (0.1*r.MScaleAll*math.Log(r.Factor) + 1)
		}
		if !or(r.Truncate, true) {
			return errors.New("rope_scaling.truncate = false: only whole borders of the ramp are supported")
		}
	default:
		return fmt.Errorf("rope_scaling.rope_type %q: supported are default, linear, llama3 and yarn", kind)
	}
	return nil
}

// Supported says by name what of the model this room cannot import; nil where weights can be read and computed with exactly.
func (c Config) Supported() error {
	var errs []error
	refuse := func(bad bool, key string, value any, why string) {
		if bad {
			errs = append(errs, fmt.Errorf("%s = %v: %s", key, value, why))
		}
	}
	refuse(c.ModelType == "mixtral", "model_type", c.ModelType, "experts are planned, not imported")
	refuse(c.Quantization != nil, "quantization_config", "...", "quantised weights are not read; save the model in float32, float16 or bfloat16")
	if c.ModelType == "gpt2" {
		act := or(c.Activation, "gelu_new")
		refuse(act != "gelu_new" && act != "gelu_pytorch_tanh", "activation_function", act, "want gelu_new, the tanh form")
		refuse(!or(c.ScaleWeights, true), "scale_attn_weights", false, "scores are divided by sqrt(head size) here")
		refuse(c.ScaleByLayer, "scale_attn_by_inverse_layer_idx", true, "scores are not scaled by the layer here")
		refuse(c.CrossAttend, "add_cross_attention", true, "there is no encoder here")
		return errors.Join(errs...)
	}
	act := or(c.HiddenAct, "silu")
	refuse(act != "silu" && act != "swish", "hidden_act", act, "want silu")
	refuse(c.AttentionBias, "attention_bias", true, "biases of the output projection are not supported")
	refuse(c.MLPBias, "mlp_bias", true, "biases of the feed-forward layer are not supported")
	partial := or(c.Partial, 1)
	if r := c.RopeParams; r != nil {
		partial = or(r.Partial, partial)
	}
	refuse(partial != 1, "partial_rotary_factor", partial, "whole heads are turned here")
	window := c.window()
	refuse(window > 0 && window < c.Positions, "sliding_window", window, "attention sees the whole sample here; sliding windows are not supported")
	for i, t := range c.LayerTypes {
		refuse(t != "full_attention" && window < c.Positions, fmt.Sprintf("layer_types[%d]", i), t, "want full_attention")
	}
	return errors.Join(errs...)
}

// window is the sliding window of attention; 0 for none.
func (c Config) window() int {
	if !or(c.UseWindow, c.ModelType == "mistral" || c.ModelType == "mixtral") {
		return 0
	}
	return or(c.Window, 0)
}
