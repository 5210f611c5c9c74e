package hf_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"triax/checkpoint/safetensors"
	"triax/cpu"
	"triax/hf"
	"triax/nn"
	"triax/tensor"
)

// models are the folders that tools/golden/models.py makes.
var models = []string{"gpt2", "llama", "mistral", "qwen2", "qwen3"}

// golden is what PyTorch computed.
type golden struct {
	t    *testing.T
	file *safetensors.File
}

func openGolden(t *testing.T, model string) golden {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", model, "golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return golden{t, f}
}

func (g golden) floats(name string) []float64 {
	g.t.Helper()
	a, ok := g.file.Arrays[name]
	if !ok {
		g.t.Fatalf("no %s", name)
	}
	out := make([]float64, a.Elements())
	a.DType.Values(out, g.file.Bytes(a))
	return out
}

func (g golden) ids(name string) (ids []int32, shape []int) {
	g.t.Helper()
	a, ok := g.file.Arrays[name]
	if !ok {
		g.t.Fatalf("no %s", name)
	}
	raw := g.file.Bytes(a)
	for i := range a.Elements() {
		ids = append(ids, int32(uint32(raw[4*i])|uint32(raw[4*i+1])<<8|uint32(raw[4*i+2])<<16|uint32(raw[4*i+3])<<24))
	}
	return ids, a.Shape
}

// model is an imported model on one device.
type model struct {
	dev    tensor.Device
	layers []nn.Layer
	params []*nn.Param
}

func load(t *testing.T, w *hf.Weights, float tensor.DType) *model {
	t.Helper()
	layers, err := nn.Whole(w.Model.Resolved())
	if err != nil {
		t.Fatal(err)
	}
	m := &model{dev: cpu.New(cpu.Options{Float: float, Threads: 1, Poison: true}), layers: layers}
	t.Cleanup(m.dev.Close)
	seen := map[*nn.Param]bool{}
	for _, l := range layers {
		for _, p := range l.Params() {
			if seen[p] {
				continue
			}
			seen[p] = true
			p.Data, p.Grad = m.dev.New(tensor.Parameters, p.Local...), m.dev.New(tensor.Gradients, p.Local...)
			m.dev.Zero(p.Grad)
			if err := nn.FillPart(m.dev, p.Data.View(p.Len()), p, 0, p.Len(), w); err != nil {
				t.Fatal(err)
			}
			m.params = append(m.params, p)
		}
	}
	return m
}

func (m *model) batch(ids []int32, shape []int) *nn.Batch {
	samples, seq := shape[0], shape[1]
	var targets, positions, index, sample []int32
	for i := range ids {
		positions, index = append(positions, int32(i%seq)), append(index, int32(i))
		if i%seq == seq-1 {
			targets = append(targets, -1)
		} else {
			targets = append(targets, ids[i+1])
		}
	}
	for i := range samples {
		sample = append(sample, int32(i))
	}
	up := func(v []int32) *tensor.Tensor {
		t := m.dev.Heap().New(tensor.Inputs, tensor.I32, len(v))
		m.dev.UploadI32(t, v)
		return t
	}
	return &nn.Batch{
		Samples: samples, Seq: seq, SampleSeq: seq, Scale: 1 / float64(samples*(seq-1)), SampleScale: 1 / float64(samples),
		Tokens: up(ids), Targets: up(targets), Positions: up(positions), Index: up(index), SampleIndex: up(sample),
	}
}

func (m *model) values(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	m.dev.Download(out, x)
	return out
}

// pass is logits, loss and gradients of one batch.
func (m *model) pass(t *testing.T, b *nn.Batch) (logits []float64, loss float64) {
	t.Helper()
	ctx := &nn.Ctx{Context: context.Background(), Dev: m.dev, Batch: b, Train: true, Step: 1}
	var x *tensor.Tensor
	saved := make([]nn.Saved, len(m.layers))
	for i, l := range m.layers {
		var err error
		if i == len(m.layers)-1 {
			logits = m.values(x)
		}
		if x, saved[i], err = l.Forward(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	loss = m.values(x)[0]
	x.Release()
	var dy *tensor.Tensor
	for i := len(m.layers) - 1; i >= 0; i-- {
		var err error
		if dy, err = nn.Backward(ctx, m.layers[i], saved[i], dy); err != nil {
			t.Fatal(err)
		}
	}
	return logits, loss
}

// worst is the largest difference over the largest value of whole.
func worst(got, want, whole []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	top, d := 0.0, 0.0
	for _, x := range whole {
		top = max(top, math.Abs(x))
	}
	for i, w := range want {
		d = max(d, math.Abs(got[i]-w))
	}
	return d / top
}

// TestParity: logits, loss and every gradient of an imported model are those of transformers.
func TestParity(t *testing.T) {
	for _, name := range models {
		for _, float := range []tensor.DType{tensor.F32, tensor.F64} {
			t.Run(fmt.Sprint(name, " ", float), func(t *testing.T) {
				g := openGolden(t, name)
				w, err := hf.Open(filepath.Join("testdata", name))
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				m := load(t, w, float)
				logits, loss := m.pass(t, m.batch(g.ids("input_ids")))
				all, want := g.floats("logits"), g.floats("loss")[0]
				dl := worst(logits, all, all)
				ds := math.Abs(loss-want) / want
				dg, where := 0.0, ""
				for _, p := range m.params {
					// Over the whole tensor: the keys' part of GPT-2's fused bias has no gradient, since softmax takes no notice of it.
					whole := g.floats("grad." + w.Tensor(p))
					if d := worst(m.values(p.Grad), w.Gather(p, whole), whole); d > dg {
						dg, where = d, p.Name
					}
				}
				if dl > 1e-5 || ds > 1e-6 || dg > 1e-4 {
					t.Errorf("relative differences too large")
				}
				t.Logf("%-8s %v: logits %.1g, loss %.1g, gradients %.1g (%s), %d parameters", name, float, dl, ds, dg, where, len(m.params))
			})
		}
	}
}
