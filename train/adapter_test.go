package train

import (
	"context"
	"fmt"
	"math"
	"testing"

	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/nn"
	"triax/tensor"
)

// adapted is the grid's model with adapters beside every matrix.
func adapted(t *testing.T, set ...string) *configs.Config {
	t.Helper()
	cfg := base()
	cfg.Model.LoRARank, cfg.Model.LoRAAlpha, cfg.Model.LoRATargets = 3, 5, []string{"q", "k", "v", "out", "up", "down"}
	text, err := cfg.TOML()
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err = configs.Parse(text, set); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestAdaptersEqualToUncut: low-rank adapters beside frozen matrices learn the same on every mesh, and nothing else changes.
func TestAdaptersEqualToUncut(t *testing.T) {
	for i, set := range [][]string{
		{"mesh.dp=2", "zero.stage=0"},
		{"mesh.dp=3", "zero.stage=1", "zero.overlap=true"},
		{"mesh.dp=2", "mesh.dp_replicate=2", "zero.stage=2", "pipeline.microbatches=3"},
		{"mesh.dp=4", "zero.stage=3", "zero.overlap=true", "pipeline.microbatches=3", "optim.rule=sgd"},
		{"mesh.tp=2", "train.verify=true"},
		{"mesh.tp=4", "mesh.sequence_parallel=true", "model.family=llama", "model.kv_heads=2", "model.lora_targets=q,k,v,out,gate,up,down"},
		{"mesh.tp=2", "mesh.tp_overlap=true", "mesh.dp=2", "zero.stage=3", "model.recompute=full"},
		{"mesh.pp=2", "pipeline.schedule=zb-h1", "pipeline.microbatches=4", "model.tied=true", "model.lora_targets=q"},
		{"mesh.pp=2", "mesh.tp=2", "mesh.dp=2", "zero.stage=2", "pipeline.microbatches=2", "model.family=llama", "model.recompute=selective"},
		{"mesh.cp=2", "mesh.tp=2", "zero.stage=1", "model.dropout=0.2"},
		{"mesh.ep=2", "mesh.dp=2", "model.experts=4", "model.top_k=2", "model.lora_targets=v,out", "zero.stage=3"},
	} {
		t.Run(fmt.Sprint(i, set), func(t *testing.T) {
			cfg := adapted(t, set...)
			corpus := letters(t, cfg.Model.Vocab, gridTokens)
			want := uncut(t, cfg, corpus)
			got, _ := cutRun(t, cfg, corpus)
			if d := compare(got, want); d.relative > equalTo {
				t.Errorf("relative difference %.3g at %s", d.relative, d.where)
			}
		})
	}
}

// TestAdapterIsMerged: loss and gradients with adapters are those of the plain model whose matrices are W + alpha/r B A: dA = scale B^T dW and
// dB = scale dW A^T.
func TestAdapterIsMerged(t *testing.T) {
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		cfg := base().Model
		cfg.Family = family
		low := cfg
		low.LoRARank, low.LoRAAlpha, low.LoRATargets = 3, 5, []string{"q", "k", "v", "out", "up", "down"}
		corpus := letters(t, cfg.Vocab, gridTokens)
		set, err := corpus.Train(cfg.Sequence, 4, 1, 1, data.Pad)
		if err != nil {
			t.Fatal(err)
		}
		dev := cpu.New(cpu.Options{Float: tensor.F64, Threads: 1, Poison: true})
		defer dev.Close()
		weights := values{}
		loss, grads := onceWith(t, dev, low, set.Global(1), func(p *nn.Param) {
			if p.Adapter { // B too is not zero, so that every gradient is something
				p.Init = nn.Init{Std: 0.3}
			}
			nn.Fill(dev, p, 1)
			weights[p.Name] = download(dev, p.Data)
		})
		plain, dW := onceWith(t, dev, cfg, set.Global(1), func(p *nn.Param) {
			w := weights[p.Name]
			base := p.Name[:max(0, len(p.Name)-len(".weight"))]
			if a := weights[base+".lora_A.weight"]; a != nil {
				b := weights[base+".lora_B.weight"]
				out, in := p.Shape[0], p.Shape[1]
				for i := range out {
					for j := range in {
						for r := range 3 {
							w[i*in+j] += 5.0 / 3 * b[i*3+r] * a[r*in+j]
						}
					}
				}
			}
			dev.Upload(p.Data, w)
		})
		var d difference
		d.see(math.Abs(loss-plain)/plain, "loss %v, merged %v", loss, plain)
		want := values{}
		for name := range grads {
			base := name[:len(name)-len(".lora_A.weight")]
			g, a, b := dW[base+".weight"], weights[base+".lora_A.weight"], weights[base+".lora_B.weight"]
			in, out := len(a)/3, len(b)/3
			v := make([]float64, len(grads[name]))
			for i := range out {
				for j := range in {
					for r := range 3 {
						if name == base+".lora_A.weight" {
							v[r*in+j] += 5.0 / 3 * b[i*3+r] * g[i*in+j]
						} else {
							v[i*3+r] += 5.0 / 3 * a[r*in+j] * g[i*in+j]
						}
					}
				}
			}
			want[name] = v
		}
		if n := map[nn.Family]int{nn.GPT2: 48, nn.Llama: 48}[family]; len(want) != n {
			t.Errorf("%s: %d gradients, want %d", family, len(want), n)
		}
		d.tensors("gradient", grads, want)
		if d.relative > equalTo {
			t.Errorf("%s: relative difference %.3g at %s", family, d.relative, d.where)
		}
	}
}

// onceWith is loss and gradients of the whole model on a batch, with weights of the caller's choice.
func onceWith(t *testing.T, dev tensor.Device, cfg nn.Config, batch data.Batch, fill func(p *nn.Param)) (float64, values) {
	t.Helper()
	layers, err := nn.Whole(cfg.Resolved())
	if err != nil {
		t.Fatal(err)
	}
	g := values{}
	for _, p := range uniqueParams(layers) {
		p.Data = dev.New(tensor.Parameters, p.Local...)
		fill(p)
		if !p.Frozen {
			p.Grad = dev.New(tensor.Gradients, p.Local...)
			dev.Zero(p.Grad)
		}
	}
	b := load(dev, batch.Samples, part{of: 1}, 1/float64(batch.Valid), len(batch.Samples))
	defer unload(b)
	loss := passes(t, layers, &nn.Ctx{Context: context.Background(), Dev: dev, Batch: b, Train: true, Seed: 1, Step: 1})
	for _, p := range uniqueParams(layers) {
		if !p.Frozen {
			g[p.Name] = download(dev, p.Grad)
		}
	}
	return loss, g
}
