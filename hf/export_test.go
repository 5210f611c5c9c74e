package hf_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/checkpoint/safetensors"
	"triax/hf"
	"triax/nn"
)

// tensorsOf is every tensor of a folder: its type, shape and bytes.
func tensorsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "model*.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range f.Arrays {
			out[name] = fmt.Sprint(a.DType, a.Shape) + string(bytes.Clone(f.Bytes(a)))
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var stored = map[string]safetensors.DType{
	"gpt2": safetensors.F32, "llama": safetensors.F32, "mistral": safetensors.BF16, "qwen2": safetensors.F32, "qwen3": safetensors.F16,
}

// TestRoundTrip: what is imported and exported again is the same, tensor by tensor and byte by byte (B7, B82), in one file or several.
func TestRoundTrip(t *testing.T) {
	for _, name := range models {
		for _, shard := range []int64{0, 30_000} {
			from := filepath.Join("testdata", name)
			w, err := hf.Open(from)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			to := filepath.Join(t.TempDir(), "out")
			if err := (hf.Export{Model: w.Model, From: w, DType: stored[name], Like: from, ShardBytes: shard}).Write(to); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want, got := tensorsOf(t, from), tensorsOf(t, to)
			for tensor, x := range want {
				if got[tensor] != x {
					t.Errorf("%s: tensor %s differs", name, tensor)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s: %d tensors, want %d", name, len(got), len(want))
			}
			if several := exists(filepath.Join(to, "model.safetensors.index.json")); several != (shard > 0) {
				t.Errorf("%s: index %v with shards of %d bytes", name, several, shard)
			}
			again, err := hf.ReadConfig(to)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := again.Shape(); err != nil || fmt.Sprint(m.Resolved()) != fmt.Sprint(w.Model.Resolved()) {
				t.Errorf("%s: %v, %v\nwant %v", name, m.Resolved(), err, w.Model.Resolved())
			}
		}
	}
}

// TestOldGPT2: the first files of GPT-2 have no prefix, and masks among their tensors. A window that no sample reaches is none.
func TestOldGPT2(t *testing.T) {
	from := filepath.Join("testdata", "gpt2")
	f, err := safetensors.Open(filepath.Join(from, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	write := func(extra ...safetensors.Spec) error {
		specs := extra
		for _, name := range f.Names() {
			a := f.Arrays[name]
			specs = append(specs, safetensors.Spec{Name: strings.TrimPrefix(name, "transformer."), DType: a.DType, Shape: a.Shape, Write: func(w io.Writer) error {
				_, err := w.Write(f.Bytes(a))
				return err
			}})
		}
		if err := safetensors.Create(filepath.Join(dir, "model.safetensors"), nil, specs); err != nil {
			t.Fatal(err)
		}
		w, err := hf.Open(dir)
		if err != nil {
			return err
		}
		defer w.Close()
		return (hf.Export{Model: w.Model, From: w, DType: safetensors.F32, Like: from}).Write(filepath.Join(t.TempDir(), "out"))
	}
	text, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	zeros := func(name string, shape ...int) safetensors.Spec {
		n := 4
		for _, d := range shape {
			n *= d
		}
		return safetensors.Spec{Name: name, DType: safetensors.F32, Shape: shape, Write: func(w io.Writer) error { _, err := w.Write(make([]byte, n)); return err }}
	}
	if err := write(zeros("h.0.attn.bias", 1, 1, 32, 32), zeros("h.3.attn.masked_bias")); err != nil {
		t.Errorf("masks beside the weights: %v", err)
	}
	if err := write(zeros("h.0.attn.rotary", 4)); err == nil || !strings.Contains(err.Error(), `"transformer.h.0.attn.rotary" belongs to no parameter`) {
		t.Errorf("a tensor of something else: %v", err)
	}
}

// TestWindow: a sliding window that no sample reaches is none, and a longer sample is refused.
func TestWindow(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		text, err := os.ReadFile(filepath.Join("testdata", "mistral", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), bytes.Replace(text, []byte(`"sliding_window": null`), []byte(`"sliding_window": 64`), 1), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := hf.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	long := w.Model
	long.Sequence = 65
	if err := w.Fits(long); err == nil || !strings.Contains(err.Error(), "model.sequence = 65") {
		t.Errorf("a sample longer than the window: %v", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := (hf.Export{Model: w.Model, From: w, DType: safetensors.BF16, Like: dir}).Write(out); err != nil {
		t.Fatal(err)
	}
	if c, err := hf.ReadConfig(out); err != nil || c.Window == nil || *c.Window != 64 {
		t.Errorf("the window of the export: %v, %v", c.Window, err)
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// fixed is a source of one value.
type fixed float64

func (f fixed) Values(dst []float64, _ *nn.Param, _ int) error {
	for i := range dst {
		dst[i] = float64(f)
	}
	return nil
}

// TestExportRefuses: what a folder cannot say, or a type cannot hold, is an error that names it, and leaves nothing.
func TestExportRefuses(t *testing.T) {
	gpt := nn.Config{Family: nn.GPT2, Layers: 2, Width: 16, Heads: 4, Vocab: 31, Sequence: 8, Tied: true}
	llama := nn.Config{Family: nn.Llama, Layers: 2, Width: 16, Heads: 4, KVHeads: 2, Vocab: 31, Sequence: 8}
	for _, c := range []struct {
		change func(*hf.Export)
		want   string
	}{
		{func(e *hf.Export) { e.Model.KVHeads = 2 }, "fused matrix"},
		{func(e *hf.Export) { e.Model.HeadDim = 8 }, "fused matrix"},
		{func(e *hf.Export) { e.Model.Experts = 4 }, "model.experts"},
		{func(e *hf.Export) { e.Model.LoRARank = 4 }, "model.lora_rank"},
		{func(e *hf.Export) { e.Model = llama; e.Model.QKNorm, e.Model.QKVBias = true, true }, "no model_type has both"},
		{func(e *hf.Export) { e.DType = safetensors.F64 }, `type "F64"`},
		{func(e *hf.Export) { e.From, e.DType = fixed(1e5), safetensors.F16 }, "element 0 is 100000, which float16 does not hold"},
		{func(e *hf.Export) { e.From = fixed(nan()) }, "element 0 is NaN"},
		{func(e *hf.Export) { e.Like = "nowhere" }, "nowhere"},
	} {
		e := hf.Export{Model: gpt, From: fixed(1), DType: safetensors.F32, EOS: -1}
		c.change(&e)
		dir := t.TempDir()
		if err := e.Write(filepath.Join(dir, "out")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q expected: %v", c.want, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("%q: left %v behind, %v", c.want, list, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (hf.Export{Model: gpt, From: fixed(1), DType: safetensors.F32}).Write(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with files: %v", err)
	}
}

func nan() float64 { var z float64; return z / z }
