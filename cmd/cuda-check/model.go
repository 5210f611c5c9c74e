package main

import (
	"context"
	"fmt"
	"strings"

	"triax/configs"
	"triax/cuda"
	"triax/data"
	"triax/nn"
	"triax/tensor"
	"triax/train"
)

// quick is weights of no meaning: those of a seed take a minute for a billion parameters.
type quick struct{}

func (quick) Values(dst []float64, p *nn.Param, first int) error {
	for i := range dst {
		dst[i] = p.Init.Mean
		if p.Init.Std > 0 {
			dst[i] += p.Init.Std * (float64(uint32(first+i)*2654435761>>8)/(1<<23) - 1)
		}
	}
	return nil
}

func small(ctx context.Context, b *bench) error {
	_, err := b.train(ctx, b.size.small)
	return err
}

func large(ctx context.Context, b *bench) error {
	_, err := b.train(ctx, b.size.large)
	return err
}

// train is a few steps in bfloat16, and what they reach.
func (b *bench) train(ctx context.Context, m model) (*train.Result, error) {
	cfg, err := configs.Parse(nil, []string{
		"model.family=gpt2", fmt.Sprint("model.layers=", m.layers), fmt.Sprint("model.width=", m.width), fmt.Sprint("model.heads=", m.heads),
		fmt.Sprint("model.vocab=", m.vocab), fmt.Sprint("model.sequence=", m.sequence), "model.tied=true",
		fmt.Sprint("train.steps=", m.steps), fmt.Sprint("train.batch=", m.batch), "train.eval_batches=0", "train.precision=bf16", "train.device=cuda",
		"data.held_out=0", "optim.warmup=0", "optim.lr=1e-4", "optim.clip=1", "checkpoint.last=false",
	})
	if err != nil {
		return nil, err
	}
	corpus, err := text(m)
	if err != nil {
		return nil, err
	}
	d, err := b.m.Device(cuda.Options{Float: tensor.BF16})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	res, err := train.Run(ctx, cfg, train.Options{Corpus: corpus, Weights: quick{}, Open: func(int) tensor.Device { return d }})
	if err != nil {
		return nil, err
	}
	b.report(m, res)
	if len(res.Skipped) > 0 {
		return res, fmt.Errorf("gradients that are no numbers in steps %v", res.Skipped)
	}
	return res, nil
}

// report counts 6 operations a parameter and token, and 6 L D T for causal attention (llm.c's count); and the same with the whole square of scores, 12 L D T (Chowdhery
// et al. 2022, app. B).
func (b *bench) report(m model, res *train.Result) {
	dense, scores := 6*float64(res.Params), 6*float64(m.layers*m.width*m.sequence)
	rate := func(peak float64) string {
		return fmt.Sprintf("%.1f%% (%.1f%% by the whole square)", 100*(dense+scores)*res.TokensPerS/peak, 100*(dense+2*scores)*res.TokensPerS/peak)
	}
	b.say("%d parameters, %d x %d tokens a step: %.1f ms, %.0f tokens/s; loss %.3f after %d steps; peak memory %.1f GiB",
		res.Params, m.batch, m.sequence, res.StepMS, res.TokensPerS, res.Loss[len(res.Loss)-1], len(res.Loss), float64(res.Memory[0].Peak)/(1<<30))
	if peak := sheet(b.info.Name); peak > 0 {
		b.say("MFU %s of the data sheet's %.0f TFLOP/s", rate(peak), peak/1e12)
	}
	if b.rate.gemm > 0 {
		b.say("%s of the measured product's %.0f TFLOP/s", rate(b.rate.gemm), b.rate.gemm/1e12)
	}
}

// sheet is the dense bfloat16 rate of NVIDIA's data sheets; 0 where it is not known here.
func sheet(name string) float64 {
	for _, s := range []struct {
		part string
		rate float64
	}{{"H200", 989.4e12}, {"GH200", 989.4e12}, {"H100 PCIe", 756e12}, {"H100", 989.4e12}, {"A100", 312e12}} {
		if strings.Contains(name, s.part) {
			return s.rate
		}
	}
	return 0
}

// text is letters enough for all steps.
func text(m model) (*data.Corpus, error) {
	tok, err := data.NewTokenizer("bytes")
	if err != nil {
		return nil, err
	}
	letters, x := make([]byte, m.steps*m.batch*(m.sequence+1)), uint32(1)
	for i := range letters {
		x = x*1664525 + 1013904223
		letters[i] = 'a' + byte(x>>24)%26
	}
	return data.Of(tok, 0, string(letters))
}
