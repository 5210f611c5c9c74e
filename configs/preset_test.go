package configs

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/nn"
)

// TestPresets: every named model has the number of parameters that it is known by.
func TestPresets(t *testing.T) {
	known := map[string]float64{
		"gpt2": 124.4e6, "gpt2-medium": 354.8e6, "gpt2-large": 774.0e6, "gpt2-xl": 1557.6e6, "gpt3-175b": 174.6e9,
		"megatron-1.7b": 1.65e9, "megatron-3.6b": 3.56e9, "megatron-7.5b": 7.46e9, "megatron-18b": 18.4e9, "megatron-39b": 39.1e9, "megatron-76b": 76.0e9,
		"megatron-145b": 145.6e9, "megatron-310b": 310.1e9, "megatron-530b": 529.6e9, "megatron-1t": 1008e9,
		"llama2-7b": 6.738e9, "llama2-13b": 13.016e9, "llama2-70b": 68.977e9, "llama3-8b": 8.030e9, "llama3-70b": 70.554e9, "llama3-405b": 405.85e9,
		"mixtral-8x7b": 46.703e9, "mistral-7b": 7241732096, "qwen2.5-0.5b": 494032768, "qwen2.5-7b": 7615616512,
		"qwen3-0.6b": 596049920, "qwen3-8b": 8190735360, "qwen3-32b": 32762123264,
	}
	for _, name := range Presets() {
		c, err := Parse([]byte("[model]\npreset = \""+name+"\"\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		layers, err := nn.Whole(Resolved(c).Model)
		if err != nil {
			t.Fatal(err)
		}
		seen, n := map[*nn.Param]bool{}, 0.0
		for _, l := range layers {
			for _, p := range l.Params() {
				if !seen[p] {
					seen[p] = true
					n += float64(p.Elements())
				}
			}
		}
		if want := known[name]; math.Abs(n/want-1) > 0.005 || math.Mod(want, 1e5) != 0 && n != want { // those known to the last one are
			t.Errorf("%s: %.11g parameters, known as %.11g", name, n, want)
		}
	}
}

// TestHuggingFace: a config.json is read, keys of the file and overrides go before it, and what cannot be read is said.
func TestHuggingFace(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write(`{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
		"intermediate_size": 96, "vocab_size": 300, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 20000.0, "tie_word_embeddings": true, "x": [1]}`)
	c, err := Parse([]byte("[model]\npreset = \""+path+"\"\nsequence = 32\n"), []string{"model.layers=2"})
	if err != nil {
		t.Fatal(err)
	}
	m := c.Model
	if m.Layers != 2 || m.Width != 64 || m.KVHeads != 2 || m.Hidden != 96 || m.Vocab != 300 || m.Sequence != 32 || m.Eps != 1e-6 || m.RopeBase != 20000 || !m.Tied || m.Family != nn.Llama {
		t.Errorf("%+v", m)
	}
	for text, want := range map[string]string{
		`{"model_type": "bert"}`: "this reads gpt2, llama", `{`: "not a config.json", `{"model_type": "gpt2", "n_layer": -1}`: "model.layers = -1",
	} {
		_, err := Parse(nil, []string{"model.preset=" + write(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Parse([]byte("[model]\npreset = \"lama2-7b\"\n"), nil); err == nil || !strings.Contains(err.Error(), "did you mean llama2-7b") {
		t.Errorf("got %v", err)
	}
}
