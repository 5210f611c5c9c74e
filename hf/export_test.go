package hf_test

import (
	"bytes"
	"fmt"
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
