package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/checkpoint/safetensors"
	"triax/hf"
	"triax/nn"
	"triax/train"
)

// published makes a folder as others publish them, for a tokenizer of bytes.
func published(t *testing.T, m nn.Config, dtype safetensors.DType) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	m.Layers, m.Width, m.Heads, m.Hidden, m.Vocab, m.Sequence, m.InitStd = 2, 16, 4, 24, 257, 32, 0.2
	if err := (hf.Export{Model: m, From: nn.Seed(4), DType: dtype, EOS: 256}).Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPublishedModels: a model goes in, is evaluated and sampled on any mesh, trains, and comes out as a folder of the type asked for.
func TestPublishedModels(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("to be or not to be, that is the question. ", 60)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, m := range []nn.Config{
		{Family: nn.GPT2, Tied: true},
		{Family: nn.Llama, KVHeads: 2, QKNorm: true, HeadDim: 8, Tied: true},
		{Family: nn.Llama, KVHeads: 1, QKVBias: true, RopeScaling: nn.RopeYaRN, RopeFactor: 2, RopeOriginal: 16},
	} {
		dir := published(t, m, safetensors.BF16)
		run, out := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "out")
		ok := func(args ...string) string {
			t.Helper()
			s, code := call(t, args...)
			if code != 0 {
				t.Fatalf("%v: exit code %d: %s", args, code, s)
			}
			return s
		}
		toml := filepath.Join(t.TempDir(), "from.toml")
		if s := ok("import", dir, "--tp", "2", "--dp", "2", "--zero", "3", "-o", toml); !strings.Contains(s, "dp1 pp0 tp1") {
			t.Errorf("import: %s", s)
		}
		loss := func(args ...string) float64 {
			t.Helper()
			var e train.Score
			if err := json.Unmarshal([]byte(ok(append(args, "--json", "--data", text)...)), &e); err != nil || e.Tokens != 2520 {
				t.Fatalf("eval: %+v, %v", e, err)
			}
			return e.Loss
		}
		before, cut := loss("eval", dir), loss("eval", dir, "--tp", "2", "--pp", "2")
		if d := before - cut; d > 1e-6*before || d < -1e-6*before {
			t.Errorf("loss %v on one rank, %v on four", before, cut)
		}
		one := ok("sample", dir, "to be", "--tokens", "12", "--temperature", "0.7", "--seed", "5")
		if two := ok("sample", dir, "to be", "--tokens", "12", "--temperature", "0.7", "--seed", "5", "--pp", "2", "--tp", "2"); one != two || len(one) < 6 {
			t.Errorf("sample %q on one rank, %q on four", one, two)
		}
		ok("train", toml, "--steps", "5", "--out", run, "--set", "data.source="+text, "--set", "train.batch=4", "--set", "checkpoint.last=true", "--set", "optim.lr=0.01", "--set", "data.held_out=0.1")
		if err := os.Rename(dir, dir+".gone"); err != nil { // the run has its own weights now
			t.Fatal(err)
		}
		ok("resume", run, "--steps", "6")
		if s := ok("export", run, "--dtype", "bf16", "-o", out); !strings.Contains(s, "bf16 in 1 files") {
			t.Errorf("export: %s", s)
		}
		if s := ok("inspect", out); !strings.Contains(s, "BF16") || !strings.Contains(s, "blocks.1.attn.v.weight") {
			t.Errorf("inspect: %s", s)
		}
		saved, exported := loss("eval", run), loss("eval", out)
		if saved > 0.98*before {
			t.Errorf("loss %v before training, %v after", before, saved)
		}
		if d := (exported - saved) / saved; d > 2e-3 || d < -2e-3 { // bfloat16 has eight bits
			t.Errorf("loss %v of the run, %v of its export in bfloat16", saved, exported)
		}
	}
}

// TestPublishedModelsRefused: what cannot be met exits with 2 and says why.
func TestPublishedModelsRefused(t *testing.T) {
	dir := published(t, nn.Config{Family: nn.Llama, KVHeads: 2}, safetensors.F32)
	change := func(old, by string) string {
		text, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := os.WriteFile(filepath.Join(to, "config.json"), []byte(strings.Replace(string(text), old, by, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(dir, "model.safetensors"), filepath.Join(to, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		return to
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"import", "/does/not/exist"}, "no such file"},
		{[]string{"import", t.TempDir()}, "neither a run"},
		{[]string{"import", change(`"llama"`, `"gemma"`)}, `model_type "gemma"`},
		{[]string{"import", change(`"silu"`, `"relu"`)}, "hidden_act = relu"},
		{[]string{"import", change(`"attention_bias": false`, `"attention_bias": true`)}, "attention_bias"},
		{[]string{"import", change(`"rope_scaling": null`, `"rope_scaling": {"rope_type": "longrope"}`)}, "longrope"},
		{[]string{"import", change(`"intermediate_size": 24`, `"intermediate_size": 23`)}, "want [23 16]"},
		{[]string{"import", change(`"num_hidden_layers": 2`, `"num_hidden_layers": 3`)}, `"model.layers.2.input_layernorm.weight" is missing`},
		{[]string{"import", change(`"num_hidden_layers": 2`, `"num_hidden_layers": 1`)}, `"model.layers.1.`},
		{[]string{"import", change(`"tie_word_embeddings": false`, `"tie_word_embeddings": true`)}, "lm_head.weight is not the embedding"},
		{[]string{"import", dir, "--tp", "3"}, "mesh.tp = 3"},
		{[]string{"export", dir}, "--out"},
		{[]string{"export", dir, "-o", t.TempDir() + "/x", "--dtype", "int8"}, `--dtype "int8"`},
		{[]string{"eval", dir, "--data", "/does/not/exist"}, "data.source"},
		{[]string{"sample", dir}, "a prompt"},
		{[]string{"sample", dir, "x", "--set", "data.tokenizer=gpt2"}, "model.vocab = 257"},
	} {
		if s, code := call(t, c.args...); code != exitRequest || !strings.Contains(s, c.want) {
			t.Errorf("%v: exit code %d: %s", c.args, code, s)
		}
	}
}
