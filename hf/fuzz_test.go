package hf

import (
	"os"
	"path/filepath"
	"testing"

	"triax/nn"
	"triax/tensor/alloctest"
)

// FuzzConfig: whatever a config.json says, it is refused, or a model whose sizes are bounded.
func FuzzConfig(f *testing.F) {
	for _, name := range []string{"gpt2", "llama", "mistral", "qwen2", "qwen3"} {
		text, err := os.ReadFile(filepath.Join("testdata", name, "config.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"model_type":"llama","num_hidden_layers":-1,"hidden_size":9223372036854775807}`))
	f.Add([]byte(`{"model_type":"qwen3","rope_parameters":{"rope_type":"yarn","factor":1e308,"mscale":1e-308,"mscale_all_dim":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c Config
		var err error
		alloctest.Linear(t, len(text), func() { c, err = ParseConfig(text) })
		if err != nil {
			return
		}
		m, err := c.Shape()
		if err != nil || c.Supported() != nil || sane(m) != nil {
			return
		}
		if m.Family == nn.Llama {
			if m.HeadDim < 1<<12 {
				nn.NewRotary(m.Resolved())
			}
		}
		if kind := kindOf(m.Resolved()); architectures[kind] == "" {
			t.Fatalf("no architecture for %q", kind)
		}
	})
}

// FuzzIndex: an index names files of its own folder, or is refused.
func FuzzIndex(f *testing.F) {
	for _, name := range []string{"llama", "qwen3"} {
		text, err := os.ReadFile(filepath.Join("testdata", name, indexFile))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"weight_map":{"a":"../../etc/passwd.safetensors"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var files []string
		var err error
		alloctest.Linear(t, len(text), func() { _, files, err = parseIndex(text) })
		if err != nil {
			return
		}
		for _, name := range files {
			if filepath.Base(name) != name || filepath.Dir(filepath.Join("x", name)) != "x" {
				t.Fatalf("file %q", name)
			}
		}
	})
}

// FuzzFolder: a real file of weights beside any config.json and index.
func FuzzFolder(f *testing.F) {
	weights, err := os.ReadFile(filepath.Join("testdata", "mistral", singleFile))
	if err != nil {
		f.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join("testdata", "mistral", "config.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(config, []byte(`{"weight_map":{"lm_head.weight":"model.safetensors"}}`))
	f.Add(config, []byte(`{"weight_map":{"lm_head.weight":"..safetensors"}}`))
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, singleFile), weights, 0o644); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, config, index []byte) {
		own := t.TempDir()
		if err := os.Link(filepath.Join(dir, singleFile), filepath.Join(own, singleFile)); err != nil {
			t.Skip(err)
		}
		for name, text := range map[string][]byte{"config.json": config, indexFile: index} {
			if err := os.WriteFile(filepath.Join(own, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var w *Weights
		var err error
		alloctest.Linear(t, len(config)+len(index)+len(weights), func() { w, err = Open(own) })
		if err != nil {
			return
		}
		defer w.Close()
		layers, err := nn.Whole(w.Model.Resolved())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			for _, p := range l.Params() {
				v := make([]float64, p.Elements())
				if err := w.Values(v, p, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
