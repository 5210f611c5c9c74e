package hf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/checkpoint/safetensors"
	"triax/hf"
	"triax/nn"
)

// TestRefused: whatever this program would compute otherwise than transformers is refused by the key's name.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ model, old, by, want string }{
		{"gpt2", `"gelu_new"`, `"gelu"`, "activation_function = gelu"},
		{"gpt2", `"scale_attn_weights": true`, `"scale_attn_weights": false`, "scale_attn_weights"},
		{"gpt2", `"scale_attn_by_inverse_layer_idx": false`, `"scale_attn_by_inverse_layer_idx": true`, "scale_attn_by_inverse_layer_idx"},
		{"gpt2", `"n_inner": null`, `"n_inner": 95`, "want [24 95]"},
		{"gpt2", `"model_type": "gpt2"`, `"model_type": "gpt_neox"`, "gpt_neox"},
		{"llama", `"hidden_act": "silu"`, `"hidden_act": "gelu"`, "hidden_act = gelu"},
		{"llama", `"mlp_bias": false`, `"mlp_bias": true`, "mlp_bias"},
		{"llama", `"rope_type": "llama3"`, `"rope_type": "dynamic"`, `"dynamic"`},
		{"llama", `"vocab_size": 97`, `"vocab_size": 96`, "want [96 24]"},
		{"llama", `"model_type": "llama"`, `"quantization_config": {"bits": 4}, "model_type": "llama"`, "quantization_config"},
		{"llama", `"model_type": "llama"`, `"partial_rotary_factor": 0.5, "model_type": "llama"`, "partial_rotary_factor"},
		{"llama", `"num_hidden_layers": 4`, `"num_hidden_layers": 4000000000`, "a size of 4000000000"},
		{"llama", `"num_attention_heads": 4`, `"num_attention_heads": 3`, "heads 3 is not a multiple"},
		{"mistral", `"sliding_window": null`, `"sliding_window": 32`, "sliding_window = 32"},
		{"qwen2", `"use_sliding_window": false`, `"use_sliding_window": true, "sliding_window": 8`, "sliding_window = 8"},
		{"qwen2", `"full_attention",`, `"sliding_attention",`, "layer_types[0] = sliding_attention"},
		{"qwen3", `"attention_bias": false`, `"attention_bias": true`, "attention_bias"},
		{"qwen3", `"num_key_value_heads": 2`, `"x": 2`, "num_key_value_heads: missing"},
	} {
		from, to := filepath.Join("testdata", c.model), t.TempDir()
		list, err := os.ReadDir(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			text, err := os.ReadFile(filepath.Join(from, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if f.Name() == "config.json" {
				if !strings.Contains(string(text), c.old) {
					t.Fatalf("%s has no %s", c.model, c.old)
				}
				text = []byte(strings.Replace(string(text), c.old, c.by, 1))
			}
			if err := os.WriteFile(filepath.Join(to, f.Name()), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		w, err := hf.Open(to)
		if err == nil {
			w.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.model, c.by, err, c.want)
		}
	}
}

// TestShapes: what a config.json leaves out has the value that transformers gives it, in older and newer spellings.
func TestShapes(t *testing.T) {
	for text, want := range map[string]func(m nn.Config) bool{
		`{"model_type":"gpt2","n_layer":2,"n_embd":8,"n_head":2,"n_positions":16,"vocab_size":5}`: func(m nn.Config) bool {
			return m.Tied && m.Eps == 1e-5 && m.Hidden == 32 && m.Positions == 16
		},
		`{"model_type":"llama","num_attention_heads":4,"hidden_size":32,"max_position_embeddings":64}`: func(m nn.Config) bool {
			return !m.Tied && m.Eps == 1e-6 && m.KVHeads == 4 && m.HeadDim == 8 && m.RopeBase == 10000
		},
		`{"model_type":"qwen3","num_attention_heads":4,"num_key_value_heads":2,"hidden_size":32}`: func(m nn.Config) bool { return m.HeadDim == 128 && m.QKNorm && !m.QKVBias },
		`{"model_type":"qwen2","num_attention_heads":4,"num_key_value_heads":2,"hidden_size":32,"rope_parameters":{"rope_theta":5e5,"rope_type":"default"}}`: func(m nn.Config) bool {
			return m.RopeBase == 5e5 && m.RopeScaling == nn.RopeNone && m.QKVBias
		},
		`{"model_type":"llama","num_attention_heads":4,"hidden_size":32,"max_position_embeddings":64,"rope_scaling":{"type":"linear","factor":2}}`: func(m nn.Config) bool {
			return m.RopeScaling == nn.RopeLinear && m.RopeFactor == 2
		},
		`{"model_type":"llama","num_attention_heads":4,"hidden_size":32,"max_position_embeddings":64,"rope_scaling":{"rope_type":"yarn","factor":4,"mscale":2,"mscale_all_dim":1}}`: func(m nn.Config) bool {
			return m.RopeOriginal == 64 && m.RopeAttention > 1.1 && m.RopeAttention < 1.13
		},
	} {
		c, err := hf.ParseConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if m, err := c.Shape(); err != nil || !want(m.Resolved()) {
			t.Errorf("%s: %+v, %v", text, m.Resolved(), err)
		}
	}
}

// TestFreshModels: models that were never in a folder are exported under the model_type that computes them, and read back.
func TestFreshModels(t *testing.T) {
	for kind, m := range map[string]nn.Config{
		"gpt2":  {Family: nn.GPT2},
		"llama": {Family: nn.Llama, KVHeads: 2, RopeScaling: nn.RopeLlama3, RopeFactor: 8, RopeOriginal: 8, Tied: true},
		"qwen2": {Family: nn.Llama, QKVBias: true, RopeScaling: nn.RopeLinear, RopeFactor: 2},
		"qwen3": {Family: nn.Llama, QKNorm: true, HeadDim: 6, KVHeads: 1, RopeScaling: nn.RopeYaRN, RopeFactor: 2, RopeOriginal: 8},
	} {
		m.Layers, m.Width, m.Heads, m.Vocab, m.Sequence = 3, 16, 4, 31, 16
		dir := filepath.Join(t.TempDir(), "out")
		if err := (hf.Export{Model: m, From: nn.Seed(1), DType: safetensors.F32, EOS: 7}).Write(dir); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		w, err := hf.Open(dir)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		defer w.Close()
		want := m.Resolved()
		want.Eps, want.RopeBase = w.Model.Eps, max(want.RopeBase, 0)
		got := w.Model.Resolved()
		if kind == "gpt2" {
			got.RopeBase = want.RopeBase
		}
		if w.Config.ModelType != kind || got.RopeScaling != want.RopeScaling || got.RopeFactor != want.RopeFactor || got.HeadDim != want.HeadDim ||
			got.Eps != m.Resolved().Eps || got.RopeAttention != want.RopeAttention || got.RopeLow != want.RopeLow || got.Tied != want.Tied {
			t.Errorf("%s: %+v\nwant %+v", kind, got, want)
		}
	}
}
