package nn_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"triax/cpu"
	"triax/nn"
	"triax/tensor"
)

// model is an uncut model with its own memory, run without pipeline or optimizer.
type model struct {
	dev    tensor.Device
	layers []nn.Layer
	params []*nn.Param
	batch  *nn.Batch
	held   []*tensor.Tensor
	extra  float64 // losses of inner layers in the last forward
}

func tiny(family nn.Family, change func(*nn.Config)) nn.Config {
	cfg := nn.Config{Family: family, Layers: 2, Width: 8, Heads: 4, KVHeads: 2, Hidden: 12, Vocab: 11, Sequence: 5, InitStd: 0.3}
	if change != nil {
		change(&cfg)
	}
	return cfg.Resolved()
}

func newModel(t *testing.T, cfg nn.Config) *model {
	t.Helper()
	layers, err := nn.Whole(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{dev: cpu.New(cpu.Options{Float: tensor.F64, Poison: true}), layers: layers}
	seen := map[*nn.Param]bool{}
	for _, l := range layers {
		for _, p := range l.Params() {
			if seen[p] {
				continue
			}
			seen[p] = true
			p.Data, p.Grad = m.dev.New(tensor.Parameters, p.Local...), m.dev.New(tensor.Gradients, p.Local...)
			m.held = append(m.held, p.Data, p.Grad)
			nn.Fill(m.dev, p, 3)
			m.dev.Zero(p.Grad)
			m.params = append(m.params, p)
		}
	}
	m.batch = m.load(2, cfg)
	t.Cleanup(m.dev.Close)
	return m
}

func (m *model) load(samples int, cfg nn.Config) *nn.Batch {
	T := samples * cfg.Sequence
	b := &nn.Batch{Samples: samples, Seq: cfg.Sequence, SampleSeq: cfg.Sequence, SampleScale: 1 / float64(samples)}
	var tokens, targets, positions, index, sample []int32
	valid := 0
	for i := range T {
		tokens, positions, index = append(tokens, int32((i*7+3)%cfg.Vocab)), append(positions, int32(i%cfg.Sequence)), append(index, int32(i))
		b.RowSample = append(b.RowSample, int32(i/cfg.Sequence))
		target := int32((i*5 + 1) % cfg.Vocab)
		if i%4 == 3 {
			target = -1
		} else {
			valid++
		}
		targets = append(targets, target)
	}
	for i := range samples {
		sample = append(sample, int32(i))
	}
	up := func(v []int32) *tensor.Tensor {
		t := m.dev.Heap().New(tensor.Inputs, tensor.I32, len(v))
		m.dev.UploadI32(t, v)
		m.held = append(m.held, t)
		return t
	}
	b.Tokens, b.Targets, b.Positions, b.Index, b.SampleIndex = up(tokens), up(targets), up(positions), up(index), up(sample)
	b.Scale = 1 / float64(valid)
	return b
}

func (m *model) ctx() *nn.Ctx {
	return &nn.Ctx{
		Context: context.Background(), Dev: m.dev, Batch: m.batch, Train: true, Seed: 5, Step: 2,
		AddLoss: func(x float64) { m.extra += x },
	}
}

func (m *model) forward(t *testing.T) (float64, []nn.Saved) {
	t.Helper()
	var x *tensor.Tensor
	var saved []nn.Saved
	m.extra = 0
	for _, l := range m.layers {
		y, s, err := l.Forward(m.ctx(), x)
		if err != nil {
			t.Fatal(err)
		}
		x, saved = y, append(saved, s)
	}
	var loss [1]float64
	m.dev.Download(loss[:], x)
	x.Release()
	return loss[0] + m.extra, saved
}

// backward runs all input gradients and then all weight gradients, or layer by layer.
func (m *model) backward(t *testing.T, saved []nn.Saved, split bool) {
	t.Helper()
	var dy *tensor.Tensor
	weight := func(i int) {
		if err := m.layers[i].BackwardWeight(m.ctx(), saved[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := len(m.layers) - 1; i >= 0; i-- {
		dx, err := m.layers[i].BackwardInput(m.ctx(), saved[i], dy)
		if err != nil {
			t.Fatal(err)
		}
		dy = dx
		if !split {
			weight(i)
		}
	}
	if split {
		for i := range m.layers {
			weight(i)
		}
	}
}

func (m *model) values(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	m.dev.Download(out, x)
	return out
}

func (m *model) grads() map[string][]float64 {
	out := map[string][]float64{}
	for _, p := range m.params {
		out[p.Name] = m.values(p.Grad)
	}
	return out
}

var variants = map[string]func(*nn.Config){
	"plain":      nil,
	"tied":       func(c *nn.Config) { c.Tied = true },
	"dropout":    func(c *nn.Config) { c.Dropout = 0.3 },
	"selective":  func(c *nn.Config) { c.Dropout, c.Recompute = 0.3, nn.RecomputeSelective },
	"full":       func(c *nn.Config) { c.Dropout, c.Recompute, c.Tied = 0.3, nn.RecomputeFull, true },
	"headDim":    func(c *nn.Config) { c.HeadDim = 6 },
	"experts":    func(c *nn.Config) { c.Experts, c.TopK, c.AuxLoss = 4, 2, 0.3 },
	"switch":     func(c *nn.Config) { c.Experts, c.TopK, c.CapacityFactor, c.Recompute = 3, 1, 1, nn.RecomputeFull },
	"qwen2":      func(c *nn.Config) { c.QKVBias = c.Family == nn.Llama },
	"qwen3":      llamaOnly(func(c *nn.Config) { c.QKNorm, c.HeadDim, c.Tied = true, 6, true }),
	"qwen3Again": llamaOnly(func(c *nn.Config) { c.QKNorm, c.HeadDim, c.QKVBias, c.Recompute = true, 6, true, nn.RecomputeSelective }),
	"linear":     llamaOnly(func(c *nn.Config) { c.RopeScaling, c.RopeFactor = nn.RopeLinear, 4 }),
	"llama3":     llamaOnly(func(c *nn.Config) { c.HeadDim, c.RopeScaling, c.RopeFactor, c.RopeOriginal = 8, nn.RopeLlama3, 8, 16 }),
	"yarn": llamaOnly(func(c *nn.Config) {
		c.HeadDim, c.RopeScaling, c.RopeFactor, c.RopeOriginal, c.RopeBase = 8, nn.RopeYaRN, 4, 16, 100
	}),
	"capacity": func(c *nn.Config) { c.Experts, c.TopK, c.CapacityFactor, c.AuxLoss = 3, 2, 0.8, 0.1 },
}

// llamaOnly leaves the other family as it is.
func llamaOnly(change func(*nn.Config)) func(*nn.Config) {
	return func(c *nn.Config) {
		if c.Family == nn.Llama {
			change(c)
		}
	}
}

// TestCentralDifferences compares every gradient with (f(w+h) - f(w-h)) / 2h, which is exact to order h².
func TestCentralDifferences(t *testing.T) {
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		for name, change := range variants {
			t.Run(fmt.Sprintf("%s/%s", family, name), func(t *testing.T) {
				m := newModel(t, tiny(family, change))
				_, saved := m.forward(t)
				m.backward(t, saved, true)
				for _, p := range m.params {
					m.differences(t, p)
				}
			})
		}
	}
}

func (m *model) differences(t *testing.T, p *nn.Param) {
	t.Helper()
	const h = 1e-5
	w, grad := m.values(p.Data), m.values(p.Grad)
	at := func(i int, x float64) float64 {
		old := w[i]
		w[i] = x
		m.dev.Upload(p.Data, w)
		w[i] = old
		loss, saved := m.forward(t)
		for _, s := range saved {
			s.Release()
		}
		return loss
	}
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for i := 0; i < len(w); i += stride {
		want := (at(i, w[i]+h) - at(i, w[i]-h)) / (2 * h)
		if diff := math.Abs(want - grad[i]); diff > 1e-8+1e-6*math.Abs(want) {
			t.Errorf("%s[%d]: gradient %.12g, differences say %.12g", p.Name, i, grad[i], want)
		}
	}
	m.dev.Upload(p.Data, w)
}

// TestSplitBackward: the two halves in any order give what the whole gives, bit by bit, and recompute changes nothing (B9, B63).
func TestSplitBackward(t *testing.T) {
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		base := func(mode string, layers int) func(*nn.Config) {
			return func(c *nn.Config) { c.Dropout, c.Tied, c.Recompute, c.RecomputeLayers = 0.2, true, mode, layers }
		}
		run := func(mode string, layers int, split bool) (float64, map[string][]float64) {
			m := newModel(t, tiny(family, base(mode, layers)))
			loss, saved := m.forward(t)
			m.backward(t, saved, split)
			return loss, m.grads()
		}
		loss, grads := run(nn.RecomputeNone, 0, false)
		for _, c := range []struct {
			mode   string
			layers int
			split  bool
		}{{nn.RecomputeNone, 0, true}, {nn.RecomputeSelective, 0, false}, {nn.RecomputeFull, 0, true}, {nn.RecomputeFull, 1, false}} {
			l, g := run(c.mode, c.layers, c.split)
			if l != loss {
				t.Errorf("%s %+v: loss %v, want %v", family, c, l, loss)
			}
			for name, want := range grads {
				for i := range want {
					// The tied table adds its two uses in another order.
					if diff := math.Abs(g[name][i] - want[i]); diff > 1e-15 {
						t.Fatalf("%s %+v: %s[%d] = %v, want %v", family, c, name, i, g[name][i], want[i])
					}
				}
			}
		}
	}
}

// TestNothingLeft: every activation is given back, with any number of microbatches in flight, trained or dropped (B80).
func TestNothingLeft(t *testing.T) {
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		for name, change := range variants {
			m := newModel(t, tiny(family, change))
			before := m.dev.Heap().Total().Now
			var all [][]nn.Saved
			for range 4 {
				_, s := m.forward(t)
				all = append(all, s)
			}
			for i, s := range all {
				if i == 2 { // an evaluation, or a step given up
					for _, k := range s {
						k.Release()
					}
					continue
				}
				m.backward(t, s, i%2 == 0)
			}
			if now := m.dev.Heap().Total().Now; now != before {
				t.Errorf("%s %s: %d bytes before, %d after", family, name, before, now)
			}
			fresh := m.dev.Heap().Fresh()
			_, s := m.forward(t)
			m.backward(t, s, false)
			if grown := m.dev.Heap().Fresh() - fresh; grown != 0 {
				t.Errorf("%s %s: a settled step asked for %d new bytes", family, name, grown)
			}
		}
	}
}

// TestRecomputeMemory: what is kept for backward shrinks from none to selective to full.
func TestRecomputeMemory(t *testing.T) {
	var kept []int64
	for _, mode := range nn.RecomputeModes {
		m := newModel(t, tiny(nn.GPT2, func(c *nn.Config) { c.Recompute, c.Layers = mode, 6 }))
		_, saved := m.forward(t)
		kept = append(kept, m.dev.Heap().Usage(tensor.Activations).Now)
		for _, s := range saved {
			s.Release()
		}
	}
	if !(kept[0] > kept[1] && kept[1] > kept[2]) {
		t.Errorf("bytes kept by %v: %v", nn.RecomputeModes, kept)
	}
}
