// Command finetune carries a published folder on, on prompts and completions of which the completions are learned: once whole, with ZeRO-3 and
// its optimizer state in files, and once with low-rank adapters on a mesh cut by tensors, which end in a folder that PEFT loads.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"triax/checkpoint"
	"triax/checkpoint/safetensors"
	"triax/configs"
	"triax/data"
	"triax/hf"
	"triax/train"
)

func main() {
	if err := run(os.Stdout, "examples/finetune/ranks.jsonl"); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer, examples string) error {
	dir, err := os.MkdirTemp("", "finetune-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	base, adapters := filepath.Join(dir, "base"), filepath.Join(dir, "adapters")
	if err := pretrain(base, filepath.Join(dir, "pretraining")); err != nil {
		return err
	}
	before, err := train.Evaluate(context.Background(), config(base, examples), train.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "held-out loss of the completions: %.1f before\n\n", before.Loss)
	fmt.Fprintln(out, "learns    mesh         parameters  gradients  optimizer   in files    after")

	whole := config(base, examples)
	whole.Mesh.DP, whole.Zero.Stage, whole.Zero.Overlap, whole.Zero.Offload = 2, 3, true, "disk"
	c, err := tune(out, "all", whole, filepath.Join(dir, "whole"))
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}

	low := config(base, examples)
	low.Mesh.DP, low.Mesh.TP, low.Zero.Stage = 2, 2, 1
	low.Model.LoRARank, low.Model.LoRATargets = 8, []string{"q", "k", "v", "out", "gate", "up", "down"}
	low.Optim.LR, low.Train.Steps = 1e-2, 100
	c, err = tune(out, "adapters", low, filepath.Join(dir, "low"))
	if err != nil {
		return err
	}
	defer c.Close()
	e := hf.Adapters{Model: low.Model, From: c.Source(checkpoint.Weight), DType: safetensors.F32, Base: base}
	if err := e.Write(adapters); err != nil {
		return err
	}
	return list(out, filepath.Join(adapters, "adapter_model.safetensors"))
}

// pretrain makes a small model that has seen text, in the layout of Hugging Face.
func pretrain(base, folder string) error {
	var text strings.Builder
	for i := range 40 {
		for j := range 20 {
			fmt.Fprintf(&text, "tp%d x dp%d: ranks %d to %d. pp%d x tp%d: %d ranks\n", i, j, i*j, i*j+i-1, j, i, i*j)
		}
	}
	corpus, err := data.Of(data.Bytes{}, 0, text.String())
	if err != nil {
		return err
	}
	cfg := configs.Default()
	cfg.Model.Family, cfg.Model.KVHeads, cfg.Model.Sequence = "llama", 2, 128
	cfg.Train.Steps, cfg.Train.EvalBatches, cfg.Optim.LR = 60, 0, 3e-3
	_, c, err := trained(cfg, train.Options{Corpus: corpus, Folder: folder})
	if err != nil {
		return err
	}
	defer c.Close()
	cfg.Model.Vocab = corpus.Tokenizer.Vocab()
	return hf.Export{Model: cfg.Model, From: c.Source(checkpoint.Weight), DType: safetensors.F32, EOS: int(corpus.Tokenizer.End())}.Write(base)
}

// config reads a model from a folder, and examples from a file.
func config(base, examples string) *configs.Config {
	cfg, err := configs.Parse(fmt.Appendf(nil, "[model]\nfrom = %q\n[data]\nsource = [%q]\nformat = \"jsonl\"\nheld_out = 0.1\n", base, examples), nil)
	if err != nil {
		panic(err) // the folder is pretrain's
	}
	cfg.Train.Steps, cfg.Train.EvalBatches, cfg.Optim.LR = 60, 0, 3e-3
	return cfg
}

// trained runs, and opens the checkpoint that the run ends with.
func trained(cfg *configs.Config, opts train.Options) (*train.Result, *checkpoint.Checkpoint, error) {
	res, err := train.Run(context.Background(), cfg, opts)
	if err != nil {
		return nil, nil, err
	}
	c, err := checkpoint.OpenVerified(context.Background(), res.Saves[len(res.Saves)-1].Path)
	return res, c, err
}

// tune fine-tunes and prints a line: what rank 0 held, and the loss on the examples that it has not seen.
func tune(out io.Writer, name string, cfg *configs.Config, folder string) (*checkpoint.Checkpoint, error) {
	res, c, err := trained(cfg, train.Options{Folder: folder})
	if err != nil {
		return nil, err
	}
	after, err := train.Evaluate(context.Background(), cfg, train.Options{Weights: c.Source(checkpoint.Weight)})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	m := res.Memory[0]
	_, err = fmt.Fprintf(out, "%-9s %-10s %12d %10d %10d %10d %8.1f\n", name, res.Mesh, m.Parameters, m.Gradients, m.Optimizer, m.Offloaded, after.Loss)
	return c, err
}

// list prints the arrays of the first layer's queries.
func list(out io.Writer, path string) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(out, "\n%s has %d arrays, of them\n", filepath.Base(path), len(f.Arrays))
	for _, name := range f.Names() {
		if strings.Contains(name, "layers.0.self_attn.q_proj") {
			fmt.Fprintf(out, "  %s %v\n", name, f.Arrays[name].Shape)
		}
	}
	return nil
}
