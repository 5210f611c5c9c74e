package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"triax/hf"
	"triax/nn"
)

// gpt and llama are the shapes of published models. Numbers are those of the papers and of the released configurations.
func gpt(layers, width, heads, vocab, seq int) nn.Config {
	return nn.Config{Family: nn.GPT2, Layers: layers, Width: width, Heads: heads, Vocab: vocab, Sequence: seq, Tied: true}
}

func llama(layers, width, heads, kv, hidden, vocab, seq int, base float64) nn.Config {
	return nn.Config{Family: nn.Llama, Layers: layers, Width: width, Heads: heads, KVHeads: kv, Hidden: hidden, Vocab: vocab, Sequence: seq, RopeBase: base}
}

// qwen2 has biases of queries, keys and values (Qwen team 2024, §2.2).
func qwen2(layers, width, heads, kv, hidden, vocab int, tied bool) nn.Config {
	c := llama(layers, width, heads, kv, hidden, vocab, 32768, 1e6)
	c.QKVBias, c.Tied, c.Eps = true, tied, 1e-6
	return c
}

// qwen3 has norms of heads, whose size does not follow from the width (Qwen team 2025, §2).
func qwen3(layers, width, heads, hidden int, tied bool) nn.Config {
	c := llama(layers, width, heads, 8, hidden, 151936, 40960, 1e6)
	c.QKNorm, c.HeadDim, c.Tied, c.Eps = true, 128, tied, 1e-6
	return c
}

// presets: GPT-2 (Radford et al. 2019, table 2), GPT-3 (Brown et al. 2020, table 2.1), Megatron's scaling models (Narayanan et al. 2021,
// table 1), Llama 2 and 3 (Touvron et al. 2023; Llama team 2024, table 3), Mistral and Mixtral (Jiang et al. 2023, table 1; 2024, table 1), Qwen 2.5 and 3 (Qwen team 2024; 2025).
var presets = map[string]nn.Config{
	"gpt2": gpt(12, 768, 12, 50257, 1024), "gpt2-medium": gpt(24, 1024, 16, 50257, 1024),
	"gpt2-large": gpt(36, 1280, 20, 50257, 1024), "gpt2-xl": gpt(48, 1600, 25, 50257, 1024),
	"gpt3-175b":     gpt(96, 12288, 96, 50257, 2048),
	"megatron-1.7b": gpt(24, 2304, 24, 51200, 2048), "megatron-3.6b": gpt(30, 3072, 32, 51200, 2048),
	"megatron-7.5b": gpt(36, 4096, 32, 51200, 2048), "megatron-18b": gpt(40, 6144, 48, 51200, 2048),
	"megatron-39b": gpt(48, 8192, 64, 51200, 2048), "megatron-76b": gpt(60, 10240, 80, 51200, 2048),
	"megatron-145b": gpt(80, 12288, 96, 51200, 2048), "megatron-310b": gpt(96, 16384, 128, 51200, 2048),
	"megatron-530b": gpt(105, 20480, 128, 51200, 2048), "megatron-1t": gpt(128, 25600, 160, 51200, 2048),
	"llama2-7b":    llama(32, 4096, 32, 32, 11008, 32000, 4096, 10000),
	"llama2-13b":   llama(40, 5120, 40, 40, 13824, 32000, 4096, 10000),
	"llama2-70b":   llama(80, 8192, 64, 8, 28672, 32000, 4096, 10000),
	"llama3-8b":    llama(32, 4096, 32, 8, 14336, 128256, 8192, 500000),
	"llama3-70b":   llama(80, 8192, 64, 8, 28672, 128256, 8192, 500000),
	"llama3-405b":  llama(126, 16384, 128, 8, 53248, 128256, 8192, 500000),
	"mistral-7b":   llama(32, 4096, 32, 8, 14336, 32000, 32768, 10000),
	"qwen2.5-0.5b": qwen2(24, 896, 14, 2, 4864, 151936, true), "qwen2.5-7b": qwen2(28, 3584, 28, 4, 18944, 152064, false),
	"qwen3-0.6b": qwen3(28, 1024, 16, 3072, true), "qwen3-8b": qwen3(36, 4096, 32, 12288, false), "qwen3-32b": qwen3(64, 5120, 64, 25600, false),
	"mixtral-8x7b": func() nn.Config {
		c := llama(32, 4096, 32, 8, 14336, 32000, 4096, 1e6)
		c.Experts, c.TopK = 8, 2
		return c
	}(),
}

// Presets lists the names.
func Presets() []string {
	var out []string
	for n := range presets {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// preset is a named model, or the one that a Hugging Face config.json describes.
func preset(name string) (nn.Config, error) {
	c, ok := presets[name]
	if strings.HasSuffix(name, ".json") {
		var err error
		if c, err = readConfig(name); err != nil {
			return c, err
		}
	} else if !ok {
		return c, fmt.Errorf("no such model; did you mean %s?", nearest(name, Presets()))
	}
	c.Preset, c.Recompute = name, nn.RecomputeNone
	return c, nil
}

// readConfig is the model that a Hugging Face config.json describes.
func readConfig(path string) (nn.Config, error) {
	c, err := hf.ReadConfig(path)
	if err != nil {
		return nn.Config{}, err
	}
	return c.Shape()
}

// usePreset starts from the model that the file or an override names: by model.preset, or by model.from, a folder with weights.
func (c *Config) usePreset(doc map[string]any, overrides []string) Problems {
	name, from := named(doc, overrides, "preset"), named(doc, overrides, "from")
	switch {
	case name == "" && from == "":
		return nil
	case from == "":
		m, err := preset(name)
		if err != nil {
			return Problems{{"model.preset", show(name), err.Error(), "one of " + strings.Join(Presets(), ", ") + ", or a config.json"}}
		}
		c.Model = m
		return nil
	case name != "" && name != from: // a run's own file names both
		return Problems{{"model.preset", show(name), "model.from names a model too", "leave one out"}}
	}
	f, err := hf.ReadConfig(from)
	if whole := named(doc, nil, "family"); errors.Is(err, fs.ErrNotExist) && whole != "" {
		return nil // a run's own file says everything; its weights are in its checkpoints
	}
	if err == nil {
		c.Model, err = f.Shape()
	}
	if err == nil {
		err = f.Supported()
	}
	if err != nil {
		return Problems{{"model.from", show(from), strings.ReplaceAll(err.Error(), "\n", "; "), "name a folder with config.json and safetensors files"}}
	}
	c.Model.From, c.Model.Recompute = from, nn.RecomputeNone
	if t := filepath.Join(from, "tokenizer.json"); named(doc, overrides, "data.tokenizer") == "" && isFile(t) {
		c.Data.Tokenizer = t
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// named is a text of the file, or of the last override of it; "" where there is none. A key without section is of [model].
func named(doc map[string]any, overrides []string, key string) string {
	section, name, ok := strings.Cut(key, ".")
	if !ok {
		section, name = "model", key
	}
	text := ""
	if m, ok := doc[section].(map[string]any); ok {
		text, _ = m[name].(string)
	}
	for _, o := range overrides {
		if v, ok := strings.CutPrefix(o, section+"."+name+"="); ok {
			text = strings.Trim(v, `"'`)
		}
	}
	return text
}
