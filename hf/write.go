package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"triax/nn"
)

// config is the folder's config.json and its model_type: the keys of the folder it is like, under those of the model.
func (e Export) config() (map[string]any, string, error) {
	m := e.Model.Resolved()
	c := map[string]any{}
	kind := kindOf(m)
	if e.Like != "" {
		text, err := readBounded(filepath.Join(e.Like, "config.json"))
		if err != nil {
			return nil, "", err
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // what is taken over stays as it is written
		if err := d.Decode(&c); err != nil {
			return nil, "", fmt.Errorf("%s: %w", filepath.Join(e.Like, "config.json"), err)
		}
		if t, _ := c["model_type"].(string); t == "mistral" && kind == "llama" {
			kind = t
		}
	} else if e.EOS >= 0 {
		c["bos_token_id"], c["eos_token_id"] = e.EOS, e.EOS
	}
	if err := exportable(m, kind); err != nil {
		return nil, "", err
	}
	if torchNames[e.DType] == "" {
		return nil, "", fmt.Errorf("type %q: want one of %v", e.DType, Types())
	}
	c["model_type"], c["architectures"] = kind, []string{architectures[kind]}
	c["dtype"], c["torch_dtype"] = torchNames[e.DType], torchNames[e.DType]
	c["vocab_size"], c["tie_word_embeddings"], c["initializer_range"] = m.Vocab, m.Tied, decimal(m.InitStd)
	if kind == "gpt2" {
		e.gpt2Keys(c, m)
	} else {
		e.llamaKeys(c, m)
	}
	return c, kind, nil
}

var architectures = map[string]string{
	"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
}

// kindOf is the model_type that computes what the model computes.
func kindOf(m nn.Config) string {
	switch {
	case m.Family == nn.GPT2:
		return "gpt2"
	case m.QKNorm:
		return "qwen3"
	case m.QKVBias:
		return "qwen2"
	}
	return "llama"
}

// exportable says what of a model no model_type has.
func exportable(m nn.Config, kind string) error {
	switch {
	case m.Experts > 0:
		return errors.New("model.experts: models with experts are not exported")
	case m.LoRARank > 0:
		return errors.New("model.lora_rank: adapters are not part of this layout")
	case m.QKNorm && m.QKVBias:
		return errors.New("model.qk_norm with model.qkv_bias: no model_type has both")
	case kind == "gpt2" && (m.KVHeads != m.Heads || m.HeadDim*m.Heads != m.Width):
		return fmt.Errorf("model.kv_heads = %d, model.head_dim = %d: gpt2's fused matrix has as many keys as queries, and as many features as the model is wide",
			m.KVHeads, m.HeadDim)
	}
	return nil
}

func (e Export) gpt2Keys(c map[string]any, m nn.Config) {
	c["n_layer"], c["n_embd"], c["n_head"], c["n_positions"], c["n_inner"] = m.Layers, m.Width, m.Heads, m.Positions, m.Hidden
	c["layer_norm_epsilon"], c["activation_function"] = decimal(m.Eps), "gelu_new"
	c["scale_attn_weights"], c["scale_attn_by_inverse_layer_idx"] = true, false
	if e.Like == "" {
		c["attn_pdrop"], c["embd_pdrop"], c["resid_pdrop"] = decimal(m.Dropout), decimal(m.Dropout), decimal(m.Dropout)
	}
}

func (e Export) llamaKeys(c map[string]any, m nn.Config) {
	c["num_hidden_layers"], c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"] = m.Layers, m.Width, m.Heads, m.KVHeads
	c["head_dim"], c["intermediate_size"], c["max_position_embeddings"] = m.HeadDim, m.Hidden, m.Positions
	c["rms_norm_eps"], c["rope_theta"], c["hidden_act"] = decimal(m.Eps), decimal(m.RopeBase), "silu"
	c["attention_bias"] = false
	if _, said := c["sliding_window"]; !said {
		c["sliding_window"] = nil // mistral's own default is a window
	}
	c["rope_scaling"] = ropeKeys(m)
	if _, newer := c["rope_parameters"]; newer {
		r := ropeKeys(m)
		if r == nil {
			r = map[string]any{"rope_type": "default"}
		}
		r["rope_theta"] = decimal(m.RopeBase)
		c["rope_parameters"] = r
		delete(c, "rope_scaling")
		delete(c, "rope_theta")
	}
}

// decimal is a number that is written with a point, as transformers demands of some.
type decimal float64

// MarshalJSON writes 8.0 where encoding/json would write 8.
func (d decimal) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(float64(d))
	if err == nil && !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return text, err
}

// ropeKeys is the scaling; nil for none.
func ropeKeys(m nn.Config) map[string]any {
	r := map[string]any{"rope_type": m.RopeScaling, "factor": decimal(m.RopeFactor)}
	switch m.RopeScaling {
	case nn.RopeLinear:
	case nn.RopeLlama3:
		r["low_freq_factor"], r["high_freq_factor"], r["original_max_position_embeddings"] = decimal(m.RopeLow), decimal(m.RopeHigh), m.RopeOriginal
	case nn.RopeYaRN:
		r["beta_slow"], r["beta_fast"], r["original_max_position_embeddings"], r["attention_factor"] = decimal(m.RopeLow), decimal(m.RopeHigh), m.RopeOriginal, decimal(m.RopeAttention)
	default:
		return nil
	}
	return r
}
