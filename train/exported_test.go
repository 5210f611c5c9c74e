package train

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/checkpoint"
	"triax/checkpoint/safetensors"
	"triax/configs"
	"triax/cpu"
	"triax/hf"
	"triax/nn"
	"triax/tensor"
)

// trainedFrom trains an imported model and returns its last checkpoint.
func trainedFrom(t *testing.T, cfg *configs.Config) *checkpoint.Checkpoint {
	t.Helper()
	folder := t.TempDir()
	_, err := Run(context.Background(), cfg, Options{
		Corpus: letters(t, cfg.Model.Vocab, 1000), Folder: folder,
		Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64, Poison: true}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c, refused, err := checkpoint.Latest(context.Background(), filepath.Join(folder, checkpointFolder))
	if err != nil || c == nil || len(refused) > 0 {
		t.Fatal(c, refused, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestImportTrainExport: a model of each kind is read into 2x2x2 ranks with ZeRO-3, trained for 20 steps, exported and read back: every tensor is there,
// holds the trained weights rounded once, and is what training on one rank makes (B6, B7, B62, B82: three of the models are tied or padded, over
// pipeline and tensor ranks). With -short two of the models.
func TestImportTrainExport(t *testing.T) {
	for i, model := range imported {
		if testing.Short() && i%3 != 0 {
			continue
		}
		set := []string{"train.steps=20", "train.device=float64", "optim.rule=sgd", "optim.lr=0.02", "optim.clip=1", "checkpoint.last=true", "optim.warmup=0"}
		cut := importedConfig(t, model, append(set, "mesh.dp=2", "mesh.pp=2", "mesh.tp=2", "zero.stage=3", "pipeline.microbatches=2", "train.verify=true")...)
		c, one := trainedFrom(t, cut), trainedFrom(t, importedConfig(t, model, set...))
		start, err := hf.Open(testdata(model))
		if err != nil {
			t.Fatal(err)
		}
		defer start.Close()
		dir := filepath.Join(t.TempDir(), "out")
		if err := (hf.Export{Model: cut.Model, From: c.Source(checkpoint.Weight), DType: safetensors.F32, Like: testdata(model)}).Write(dir); err != nil {
			t.Fatal(err)
		}
		back, err := hf.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer back.Close()
		layers, err := nn.Whole(cut.Model.Resolved())
		if err != nil {
			t.Fatal(err)
		}
		worst, moved, tensors := 0.0, 0.0, map[string]bool{}
		for _, p := range uniqueParams(layers) {
			read := func(from nn.Source) []float64 {
				v := make([]float64, p.Elements())
				if err := from.Values(v, p, 0); err != nil {
					t.Fatal(err)
				}
				return v
			}
			was, alone, saved, got := read(start), read(one.Source(checkpoint.Weight)), read(c.Source(checkpoint.Weight)), read(back)
			for i := range got {
				if got[i] != float64(float32(saved[i])) {
					t.Fatalf("%s %s[%d]: exported as %v, trained to %v", model, p.Name, i, got[i], saved[i])
				}
				worst, moved = max(worst, math.Abs(saved[i]-alone[i])), max(moved, math.Abs(saved[i]-was[i]))
			}
			tensors[back.Tensor(p)] = true
		}
		if worst > 1e-10 || moved < 1e-3 {
			t.Errorf("%s: weights moved by %.2g, and differ by %.2g from those of one rank", model, moved, worst)
		}
		t.Logf("%-8s %d parameters in %d tensors read back; moved by up to %.2g, %.1g off those of one rank", model, len(uniqueParams(layers)), len(tensors), moved, worst)
	}
}

// TestImportFaults: rows of the fault list that import and export could repeat.
func TestImportFaults(t *testing.T) {
	for _, c := range []struct {
		name, model string
		set         []string
	}{
		{"B62 padded rows of a table cut over tensor ranks", "qwen2", []string{"mesh.tp=4"}},
		{"B82 layers of the second stage numbered from zero", "llama", []string{"mesh.pp=4", "pipeline.microbatches=4"}},
		{"B6 tied copies on two stages", "gpt2", []string{"mesh.pp=2", "mesh.tp=2", "train.verify=true", "pipeline.microbatches=2", "train.steps=2"}},
		{"B31 shards with padding between parameters", "qwen3", []string{"mesh.dp=4", "zero.stage=3"}},
		{"fused queries, keys and values cut over tensor ranks", "gpt2", []string{"mesh.tp=2", "mesh.dp=2", "zero.stage=1"}},
		{"a key/value head on two tensor ranks", "mistral", []string{"mesh.tp=4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := importedConfig(t, c.model, c.set...)
			w, err := hf.Open(testdata(c.model))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			_, err = Run(context.Background(), cfg, Options{Corpus: letters(t, cfg.Model.Vocab, 500), OnWorker: func(step int, r *Worker) error {
				if step > 0 {
					return nil
				}
				return sameAsFolder(w, r)
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// sameAsFolder compares every element that a rank holds with the folder's, and padding with zero.
func sameAsFolder(w *hf.Weights, r *Worker) error {
	whole := values{}
	for piece := range r.opt.Each {
		p := piece.Param
		if whole[p.Name] == nil {
			whole[p.Name] = make([]float64, p.Elements())
			if err := w.Values(whole[p.Name], p, 0); err != nil {
				return err
			}
		}
		for i, x := range download(r.dev, piece.Weight) {
			want := 0.0
			if j := p.Logical(piece.Lo + i); j >= 0 {
				want = whole[p.Name][j]
			}
			if x != want {
				return fmt.Errorf("%s: element %d of the local part is %v, the folder says %v", p.Name, piece.Lo+i, x, want)
			}
		}
	}
	return nil
}

// TestB7TiedHead: a tied head is left out of the files, as its convention says, and neither an empty tensor nor another one may stand for it.
func TestB7TiedHead(t *testing.T) {
	w, err := hf.Open(testdata("qwen2"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	dir := filepath.Join(t.TempDir(), "out")
	if err := (hf.Export{Model: w.Model, From: w, DType: safetensors.BF16, Like: testdata("qwen2")}).Write(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "model.safetensors")
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := f.Arrays["lm_head.weight"]; ok {
		t.Error("the file has lm_head.weight")
	}
	var list []safetensors.Spec
	for _, name := range f.Names() {
		a := f.Arrays[name]
		list = append(list, spec(name, a.Shape, a.DType, f.Bytes(a)))
	}
	table := f.Arrays["model.embed_tokens.weight"]
	other := bytes.Clone(f.Bytes(table))
	other[0] ^= 1
	for _, c := range []struct {
		head safetensors.Spec
		want string
	}{
		{spec("lm_head.weight", table.Shape, table.DType, f.Bytes(table)), ""},
		{spec("lm_head.weight", table.Shape, table.DType, other), "not the embedding"},
		{spec("lm_head.weight", []int{0, 24}, table.DType, nil), "not the embedding"},
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := safetensors.Create(path, nil, append(list[:len(list):len(list)], c.head)); err != nil {
			t.Fatal(err)
		}
		again, err := hf.Open(dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q expected: %v", c.want, err)
		}
		if err == nil {
			again.Close()
		}
	}
}

func spec(name string, shape []int, dtype safetensors.DType, raw []byte) safetensors.Spec {
	return safetensors.Spec{Name: name, Shape: shape, DType: dtype, Write: func(w io.Writer) error { _, err := w.Write(raw); return err }}
}

// TestAdaptersOnImported: adapters beside an imported model start from nothing: the first loss is the model's own, on every mesh, and its weights stay.
func TestAdaptersOnImported(t *testing.T) {
	for _, model := range []string{"gpt2", "qwen3"} {
		ref := openReference(t, model)
		want := ref.values("loss")[0]
		w, err := hf.Open(testdata(model))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for _, mesh := range [][]string{{}, {"mesh.tp=2", "mesh.dp=2", "zero.stage=3"}, {"mesh.pp=2", "pipeline.microbatches=2", "zero.stage=1"}} {
			cfg := importedConfig(t, model, append(mesh, "model.lora_rank=2", "model.lora_targets=q,v,up,down", "train.steps=3", "optim.warmup=0")...)
			_, err := Run(context.Background(), cfg, Options{Corpus: letters(t, cfg.Model.Vocab, 500), OnWorker: func(step int, r *Worker) error {
				if step == 0 {
					loss, err := r.Evaluate(context.Background(), ref.batch)
					if err == nil && math.Abs(loss-want) > 1e-6*want {
						err = fmt.Errorf("loss %v, want %v", loss, want)
					}
					return err
				}
				return frozenAsFolder(w, r)
			}})
			if err != nil {
				t.Errorf("%s %v: %v", model, mesh, err)
			}
		}
	}
}

// frozenAsFolder is sameAsFolder for what does not learn; adapters must have moved.
func frozenAsFolder(w *hf.Weights, r *Worker) error {
	moved := false
	for piece := range r.opt.Each {
		p := piece.Param
		if p.Adapter {
			for _, x := range download(r.dev, piece.Weight) {
				moved = moved || strings.HasSuffix(p.Name, "lora_B.weight") && x != 0
			}
			continue
		}
		whole := make([]float64, p.Elements())
		if err := w.Values(whole, p, 0); err != nil {
			return err
		}
		for i, x := range download(r.dev, piece.Weight) {
			if j := p.Logical(piece.Lo + i); j >= 0 && x != whole[j] {
				return fmt.Errorf("%s[%d] is %v, the folder says %v", p.Name, j, x, whole[j])
			}
		}
	}
	if !moved {
		return fmt.Errorf("no adapter has learned")
	}
	return nil
}
