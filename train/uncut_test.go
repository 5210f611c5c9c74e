package train

import (
	"context"
	"math"
	"testing"

	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/nn"
	"triax/optim"
	"triax/tensor"
)

// history is what a training run did, in logical coordinates: what must not depend on the mesh.
type history struct {
	loss, norm []float64
	grads      []values          // by step, after all sums and before clipping
	weights    values            // after the last step
	states     map[string]values // by state name
}

// values is numbers by parameter name, in the order of the whole parameter.
type values map[string][]float64

// uncut trains the whole model on one device, in one batch, with update rules written out here: no mesh, no
// microbatches, no buckets. Everything else is compared with it.
func uncut(t *testing.T, cfg *configs.Config, corpus *data.Corpus) *history {
	t.Helper()
	cfg = configs.Resolved(cfg)
	dev := cpu.New(cpu.Options{Float: tensor.F64, Threads: 1, Poison: true})
	defer dev.Close()
	layers, err := nn.Whole(cfg.Model)
	if err != nil {
		t.Fatal(err)
	}
	set, err := corpus.Train(cfg.Model.Sequence, cfg.Train.Batch, 1, cfg.Train.Seed, cfg.Data.LastBatch)
	if err != nil {
		t.Fatal(err)
	}
	var params []*nn.Param // that learn
	w := values{}
	for _, p := range uniqueParams(layers) {
		p.Data = dev.New(tensor.Parameters, p.Local...)
		nn.Fill(dev, p, cfg.Train.Seed)
		w[p.Name] = download(dev, p.Data)
		if !p.Frozen {
			p.Grad = dev.New(tensor.Gradients, p.Local...)
			params = append(params, p)
		}
	}
	h := &history{states: map[string]values{"exp_avg": {}, "exp_avg_sq": {}, "momentum": {}}}
	curve := optim.NewCurve(cfg.Optim, cfg.Train.Steps)
	for step := 1; step <= cfg.Train.Steps; step++ {
		global := set.Global(step)
		batch := load(dev, global.Samples, part{of: 1}, 1/float64(max(1, global.Valid)), len(global.Samples))
		for _, p := range params {
			dev.Zero(p.Grad)
		}
		extra := 0.0
		loss := passes(t, layers, &nn.Ctx{
			Context: context.Background(), Dev: dev, Batch: batch, Train: true, Seed: cfg.Train.Seed, Step: step,
			AddLoss: func(x float64) { extra += x },
		})
		h.loss = append(h.loss, loss+extra)
		unload(batch)
		g := values{}
		sum := 0.0
		for _, p := range params {
			g[p.Name] = download(dev, p.Grad)
			for _, x := range g[p.Name] {
				sum += x * x
			}
		}
		h.grads, h.norm = append(h.grads, g), append(h.norm, math.Sqrt(sum))
		scale := 1.0
		if c := cfg.Optim.Clip; c > 0 && math.Sqrt(sum) > c {
			scale = c / math.Sqrt(sum)
		}
		for _, p := range params {
			h.update(cfg.Optim, p, w[p.Name], g[p.Name], step, curve.At(step), scale)
			dev.Upload(p.Data, w[p.Name])
		}
	}
	h.weights = w
	return h
}

func uniqueParams(layers []nn.Layer) (out []*nn.Param) {
	seen := map[*nn.Param]bool{}
	for _, l := range layers {
		for _, p := range l.Params() {
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// passes is a forward and a backward pass; it returns the loss.
func passes(t *testing.T, layers []nn.Layer, ctx *nn.Ctx) float64 {
	t.Helper()
	var x *tensor.Tensor
	saved := make([]nn.Saved, len(layers))
	for i, l := range layers {
		var err error
		if x, saved[i], err = l.Forward(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	loss := download(ctx.Dev, x)[0]
	x.Release()
	var dy *tensor.Tensor
	for i := len(layers) - 1; i >= 0; i-- {
		var err error
		if dy, err = layers[i].BackwardInput(ctx, saved[i], dy); err != nil {
			t.Fatal(err)
		}
		if err = layers[i].BackwardWeight(ctx, saved[i]); err != nil {
			t.Fatal(err)
		}
	}
	return loss
}

// update is AdamW (Loshchilov & Hutter 2019, Algorithm 2) or SGD with momentum, on the whole parameter.
func (h *history) update(c optim.Config, p *nn.Param, w, g []float64, step int, rate, scale float64) {
	decay := 0.0
	if p.Decay {
		decay = c.WeightDecay
	}
	state := func(name string) []float64 {
		s := h.states[name][p.Name]
		if s == nil {
			s = make([]float64, len(w))
			h.states[name][p.Name] = s
		}
		return s
	}
	if c.Rule == "sgd" {
		m := state("momentum")
		for i := range w {
			m[i] = c.Momentum*m[i] + scale*g[i] + decay*w[i]
			w[i] -= rate * m[i]
		}
		return
	}
	m, v := state("exp_avg"), state("exp_avg_sq")
	b1, b2 := c.Betas[0], c.Betas[1]
	for i := range w {
		x := scale * g[i]
		m[i] = b1*m[i] + (1-b1)*x
		v[i] = b2*v[i] + (1-b2)*x*x
		mh, vh := m[i]/(1-math.Pow(b1, float64(step))), v[i]/(1-math.Pow(b2, float64(step)))
		w[i] -= rate * (mh/(math.Sqrt(vh)+c.Eps) + decay*w[i])
	}
}

func download(dev tensor.Device, x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	dev.Download(out, x)
	return out
}
