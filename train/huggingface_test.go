package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"triax/checkpoint/safetensors"
	"triax/configs"
	"triax/data"
	"triax/hf"
	"triax/nn"
	"triax/tensor"
)

// imported are the models of hf/testdata, with what PyTorch computed of them.
var imported = []string{"gpt2", "llama", "mistral", "qwen2", "qwen3"}

func testdata(model string) string { return filepath.Join("..", "hf", "testdata", model) }

// reference is the golden file of a model.
type reference struct {
	*safetensors.File
	batch  data.Batch
	greedy []int32
}

func openReference(t *testing.T, model string) *reference {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(testdata(model), "golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r := &reference{File: f, greedy: f32ids(f, "greedy")[:8], batch: data.Batch{Step: 1}}
	ids, shape := f32ids(f, "input_ids"), f.Arrays["input_ids"].Shape
	for i := range shape[0] {
		s := data.Sample{Index: i, Window: i, Tokens: ids[i*shape[1]:][:shape[1]], Valid: shape[1] - 1}
		s.Targets = append(slices.Clone(s.Tokens[1:]), data.Masked)
		r.batch.Samples, r.batch.Valid = append(r.batch.Samples, s), r.batch.Valid+s.Valid
	}
	return r
}

func f32ids(f *safetensors.File, name string) (ids []int32) {
	for raw := f.Bytes(f.Arrays[name]); len(raw) > 0; raw = raw[4:] {
		ids = append(ids, int32(binary.LittleEndian.Uint32(raw)))
	}
	return ids
}

func (r *reference) values(name string) []float64 {
	a := r.Arrays[name]
	out := make([]float64, a.Elements())
	a.DType.Values(out, r.Bytes(a))
	return out
}

// importedConfig is a run that starts from a model of testdata on a mesh.
func importedConfig(t *testing.T, model string, set ...string) *configs.Config {
	t.Helper()
	cfg, err := configs.Parse([]byte("[model]\nfrom = \""+testdata(model)+"\"\nsequence = 16\n[train]\nsteps = 1\nbatch = 4\neval_batches = 0\n[data]\nheld_out = 0\n"), set)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// importMeshes cut a model of four layers, four heads and two key/value heads.
var importMeshes = [][]string{
	{},
	{"mesh.tp=2"},
	{"mesh.tp=4", "mesh.sequence_parallel=true"},
	{"mesh.pp=4", "pipeline.microbatches=4"},
	{"mesh.pp=2", "pipeline.schedule=zb-v", "pipeline.microbatches=4"},
	{"mesh.dp=2", "zero.stage=1"},
	{"mesh.dp=4", "zero.stage=2"},
	{"mesh.dp=4", "zero.stage=3", "zero.overlap=true"},
	{"mesh.dp=2", "mesh.pp=2", "mesh.tp=2", "zero.stage=3", "pipeline.microbatches=2"},
	{"mesh.cp=2", "mesh.tp=2", "zero.stage=2"},
}

// TestImportedOnMeshes: a model read straight into a mesh has the loss, the gradients and the likeliest continuation that transformers computes.
func TestImportedOnMeshes(t *testing.T) {
	for _, model := range imported {
		ref := openReference(t, model)
		want := ref.values("loss")[0]
		w, err := hf.Open(testdata(model))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		var worst difference
		for _, mesh := range importMeshes {
			cfg := importedConfig(t, model, mesh...)
			o := newObserver(1)
			var mu sync.Mutex
			var loss float64
			_, err := Run(context.Background(), cfg, Options{Corpus: letters(t, cfg.Model.Vocab, 500), OnWorker: func(step int, r *Worker) error {
				if step > 0 {
					return nil
				}
				if text, err := r.greedy(ref.batch.Samples[0].Tokens[:8], len(ref.greedy)); err != nil || !slices.Equal(text, ref.greedy) {
					return fmt.Errorf("continues with %v, %v; want %v", text, err, ref.greedy)
				}
				if err := o.attach(0, r); err != nil {
					return err
				}
				res, err := r.Step(context.Background(), 1, ref.batch)
				r.opt.Observe = nil
				mu.Lock()
				defer mu.Unlock()
				loss = res.Loss
				return err
			}})
			if err != nil {
				t.Errorf("%s %v: %v", model, mesh, err)
				continue
			}
			if len(o.disagree) > 0 {
				t.Errorf("%s %v: ranks disagree: %s", model, mesh, o.disagree[0])
			}
			if d := math.Abs(loss-want) / want; d > 1e-6 {
				t.Errorf("%s %v: loss %v, want %v", model, mesh, loss, want)
			}
			worst.see(gradientsOf(t, w, ref, o.h.grads[0]), "%v", mesh)
		}
		if worst.relative > 1e-4 {
			t.Errorf("%s: gradients differ by %.2g on %s", model, worst.relative, worst.where)
		}
		t.Logf("%-8s %d meshes, gradients differ by %.1g at most", model, len(importMeshes), worst.relative)
	}
}

// gradientsOf is the largest difference over the largest value of its tensor.
func gradientsOf(t *testing.T, w *hf.Weights, ref *reference, got values) float64 {
	t.Helper()
	worst, n := 0.0, 0
	layers, err := nn.Whole(w.Model.Resolved())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range uniqueParams(layers) {
		whole := ref.values("grad." + w.Tensor(p))
		top := 0.0
		for _, x := range whole {
			top = max(top, math.Abs(x))
		}
		want := w.Gather(p, whole)
		if len(got[p.Name]) != len(want) {
			t.Fatalf("%s: %d elements, want %d", p.Name, len(got[p.Name]), len(want))
		}
		for i, x := range want {
			worst = max(worst, math.Abs(got[p.Name][i]-x)/top)
		}
		n++
	}
	if len(got) != n {
		t.Fatalf("%d gradients, want %d", len(got), n)
	}
	return worst
}

// greedy is the likeliest continuation.
func (w *Worker) greedy(prompt []int32, n int) ([]int32, error) {
	c := w.newContinuation()
	defer c.close()
	ids := slices.Clone(prompt)
	for range n {
		next, err := c.next(context.Background(), ids, w.cfg.Model.Vocab, func(logits []float64) int {
			best := 0
			for i, x := range logits {
				if x > logits[best] {
					best = i
				}
			}
			return best
		})
		if err != nil {
			return nil, err
		}
		ids = append(ids, next)
	}
	return ids[len(prompt):], nil
}

// counted is a source that counts what is asked of it, in all and at once.
type counted struct {
	from nn.Source
	mu   sync.Mutex
	all  map[string]int
	most int
}

func (c *counted) Values(dst []float64, p *nn.Param, first int) error {
	c.mu.Lock()
	c.all[p.Name] += len(dst)
	c.most = max(c.most, len(dst))
	c.mu.Unlock()
	return c.from.Values(dst, p, first)
}

// TestImportReadsSlices: over all ranks no more elements are asked for than they hold together, and a rank's memory at its peak is its part:
// with ZeRO-3 never a whole parameter.
func TestImportReadsSlices(t *testing.T) {
	for _, c := range []struct {
		set    []string
		copies int // of the model over the mesh
	}{
		{nil, 1}, {[]string{"mesh.tp=2"}, 1}, {[]string{"mesh.pp=4", "pipeline.microbatches=4"}, 1}, {[]string{"mesh.dp=4", "zero.stage=3"}, 1},
		{[]string{"mesh.dp=4", "zero.stage=1"}, 4}, {[]string{"mesh.dp=2", "mesh.tp=2", "mesh.pp=2", "zero.stage=3", "pipeline.microbatches=2"}, 1},
	} {
		cfg := importedConfig(t, "llama", c.set...)
		w, err := hf.Open(testdata("llama"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		count := &counted{from: w, all: map[string]int{}}
		_, err = Run(context.Background(), cfg, Options{Corpus: letters(t, cfg.Model.Vocab, 500), Weights: count, OnWorker: func(step int, r *Worker) error {
			if step > 0 {
				return nil
			}
			u := r.dev.Heap()
			held, peak := u.Usage(tensor.Parameters).Now, u.Total().Peak
			rest := u.Usage(tensor.Gradients).Now + u.Usage(tensor.Optimizer).Now
			if peak > held+rest+64 { // what small calls need
				return fmt.Errorf("%d bytes at the peak of the import, %d of parameters and %d of gradients and states stay", peak, held, rest)
			}
			return nil
		}})
		if err != nil {
			t.Errorf("%v: %v", c.set, err)
		}
		layers, err := nn.Whole(cfg.Model.Resolved())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range uniqueParams(layers) {
			n, most := count.all[p.Name], p.Elements()*c.copies
			if cfg.Mesh.TP > 1 && len(p.Shape) == 1 {
				most *= cfg.Mesh.TP // norms are whole on every tensor rank
			}
			if n < p.Elements() || n > most {
				t.Errorf("%v: %s: %d elements read, want %d to %d", c.set, p.Name, n, p.Elements(), most)
			}
		}
	}
}

// TestTrainsLikePyTorch: eight steps of AdamW on one batch have PyTorch's losses, on one rank and on eight. The weights of both are float32 and move apart
// by rounding: the bound is a hundred thousandth of what the loss falls.
func TestTrainsLikePyTorch(t *testing.T) {
	for _, model := range imported {
		ref := openReference(t, model)
		want := ref.values("losses")
		for _, mesh := range [][]string{{}, {"mesh.dp=2", "mesh.pp=2", "mesh.tp=2", "zero.stage=3", "pipeline.microbatches=2"}} {
			cfg := importedConfig(t, model, append(mesh, "optim.lr=3e-3", "optim.clip=0", "optim.weight_decay=0.1")...)
			got := make([]float64, len(want))
			var mu sync.Mutex
			_, err := Run(context.Background(), cfg, Options{Corpus: letters(t, cfg.Model.Vocab, 500), OnWorker: func(step int, r *Worker) error {
				if step > 0 {
					return nil
				}
				for i := range got {
					res, err := r.Step(context.Background(), i+1, ref.batch)
					if err != nil {
						return err
					}
					mu.Lock()
					got[i] = res.Loss
					mu.Unlock()
				}
				return nil
			}})
			if err != nil {
				t.Errorf("%s %v: %v", model, mesh, err)
				continue
			}
			worst := 0.0
			for i, x := range want {
				worst = max(worst, math.Abs(got[i]-x))
			}
			if fell := want[0] - want[len(want)-1]; worst > 1e-5*fell || fell < 0.1 {
				t.Errorf("%s %v: losses %v, want %v", model, mesh, got, want)
			}
			t.Logf("%-8s loss falls from %.4f to %.4f in %d steps, %.1g off PyTorch's at most  %v", model, want[0], want[len(want)-1], len(want), worst, mesh)
		}
	}
}
