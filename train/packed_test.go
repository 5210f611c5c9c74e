package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/nn"
	"triax/tensor"
)

// questions is a corpus of prompts and completions of many lengths.
func questions(t *testing.T, documents string) *data.Corpus {
	t.Helper()
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "{\"prompt\": %q, \"completion\": %q}\n", strings.Repeat("?", 1+i*7%9), strings.Repeat("ab", i*5%4)+"!")
	}
	path := filepath.Join(t.TempDir(), "questions.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := data.Open(data.Config{Source: []string{path}, Format: data.JSONL, Documents: documents, Tokenizer: "bytes"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPackedEqualToUncut: samples packed from documents, with prompts masked and so unequal numbers of valid tokens everywhere, give the
// uncut model's gradients on every kind of mesh.
func TestPackedEqualToUncut(t *testing.T) {
	for i, set := range [][]string{
		{"mesh.dp=2", "pipeline.microbatches=3", "zero.stage=3"},
		{"mesh.tp=2", "mesh.sequence_parallel=true", "model.family=llama"},
		{"mesh.cp=2", "model.dropout=0.2"},
		{"mesh.cp=4", "model.family=llama", "mesh.dp=2", "zero.stage=2"},
		{"mesh.pp=2", "pipeline.microbatches=4", "pipeline.schedule=zb-h1", "model.family=llama"},
		{"mesh.pp=2", "mesh.dp=3", "mesh.tp=2", "pipeline.microbatches=2", "zero.stage=1", "model.dropout=0.2"},
		{"mesh.cp=2", "mesh.tp=2", "mesh.dp=2", "model.recompute=full", "zero.stage=3", "optim.rule=sgd"},
	} {
		for _, documents := range []string{data.Apart, data.Joined} {
			cfg := base()
			cfg.Model.Vocab, cfg.Model.Sequence, cfg.Train.Batch = 257, 16, 12
			text, err := cfg.TOML()
			if err != nil {
				t.Fatal(err)
			}
			if cfg, err = configs.Parse(text, set); err != nil {
				t.Fatal(err)
			}
			corpus := questions(t, documents)
			want := uncut(t, cfg, corpus)
			got, _ := cutRun(t, cfg, corpus)
			if d := compare(got, want); d.relative > equalTo {
				t.Errorf("%d %v %s: relative difference %.3g at %s", i, set, documents, d.relative, d.where)
			}
		}
	}
}

// TestPackedIsAlone: a pack of documents kept apart has the loss and the gradients of its documents each in a sample of its own.
func TestPackedIsAlone(t *testing.T) {
	const seq = 24
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		corpus := questions(t, data.Apart)
		set, err := corpus.Train(seq, 8, 1, 1, data.Pad)
		if err != nil {
			t.Fatal(err)
		}
		b := set.Global(1)
		var alone []data.Sample
		for _, s := range b.Samples {
			for d, at := range s.Starts {
				to := seq
				if d+1 < len(s.Starts) {
					to = s.Starts[d+1]
				}
				x := data.Sample{Tokens: make([]int32, seq), Targets: make([]int32, seq)}
				for i := range seq {
					x.Targets[i] = data.Masked
				}
				copy(x.Tokens, s.Tokens[at:to])
				copy(x.Targets, s.Targets[at:to])
				alone = append(alone, x)
			}
		}
		cfg := base().Model
		cfg.Family, cfg.Vocab, cfg.Sequence = family, 257, seq
		loss, grads := once(t, cfg, b.Samples, b.Valid)
		lossAlone, gradsAlone := once(t, cfg, alone, b.Valid)
		var d difference
		d.see(math.Abs(loss-lossAlone)/lossAlone, "loss %v, alone %v", loss, lossAlone)
		d.tensors("gradient", grads, gradsAlone)
		if d.relative > equalTo {
			t.Errorf("%s: relative difference %.3g at %s", family, d.relative, d.where)
		}
	}
}

// once is the loss and gradients of the whole model on these samples.
func once(t *testing.T, cfg nn.Config, samples []data.Sample, valid int) (float64, values) {
	t.Helper()
	dev := cpu.New(cpu.Options{Float: tensor.F64, Threads: 1, Poison: true})
	defer dev.Close()
	layers, err := nn.Whole(cfg.Resolved())
	if err != nil {
		t.Fatal(err)
	}
	params := uniqueParams(layers)
	for _, p := range params {
		p.Data, p.Grad = dev.New(tensor.Parameters, p.Local...), dev.New(tensor.Gradients, p.Local...)
		dev.Zero(p.Grad)
		nn.Fill(dev, p, 1)
	}
	batch := load(dev, samples, part{of: 1}, 1/float64(valid), len(samples))
	defer unload(batch)
	loss := passes(t, layers, &nn.Ctx{Context: context.Background(), Dev: dev, Batch: batch, Train: true, Seed: 1, Step: 1})
	g := values{}
	for _, p := range params {
		g[p.Name] = download(dev, p.Grad)
	}
	return loss, g
}
