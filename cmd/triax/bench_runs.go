package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"triax/configs"
	"triax/data"
	"triax/plan"
	"triax/train"
)

// ownModel is the model of the runs that the planner is held against: small enough for seconds, large enough that kernels decide.
var ownModel = []string{
	"model.family=gpt2", "model.layers=6", "model.width=384", "model.heads=6", "model.sequence=128",
	"train.batch=16", "train.eval_batches=0", "train.log_every=1000", "cpu.threads_per_rank=1",
}

// ownRuns are layouts on one machine, from one rank to eight, one change at a time and mixed.
var ownRuns = []string{
	"",
	"pipeline.microbatches=4",
	"model.recompute=full",
	"model.recompute=selective",
	"model.sequence=512 train.batch=4",
	"model.family=llama",
	"model.family=llama model.kv_heads=2 model.width=512 model.heads=8",
	"model.vocab=8192",
	"mesh.dp=2",
	"mesh.dp=2 zero.stage=1",
	"mesh.dp=2 zero.stage=2 pipeline.microbatches=2",
	"mesh.dp=2 zero.stage=3",
	"mesh.dp=2 zero.stage=3 pipeline.microbatches=2",
	"mesh.dp=2 model.family=llama model.recompute=full",
	"mesh.tp=2",
	"mesh.tp=2 mesh.sequence_parallel=true",
	"mesh.tp=2 model.vocab=8192",
	"mesh.cp=2",
	"mesh.pp=2 pipeline.microbatches=4 pipeline.schedule=gpipe",
	"mesh.pp=2 pipeline.microbatches=4 pipeline.schedule=1f1b",
	"mesh.pp=2 pipeline.microbatches=4 pipeline.schedule=interleaved pipeline.chunks=3",
	"mesh.pp=2 pipeline.microbatches=4 pipeline.schedule=zb-h1",
	"mesh.pp=2 pipeline.microbatches=4 pipeline.schedule=zb-v",
	"mesh.pp=2 mesh.tp=2 pipeline.microbatches=4",
	"mesh.dp=2 mesh.tp=2 zero.stage=1",
	"mesh.dp=2 mesh.pp=2 mesh.tp=2 pipeline.microbatches=4 zero.stage=3",
}

// own is a layout with what it was planned and measured to take.
type own struct {
	layout           string
	planned, measure float64 // seconds of a step
}

func (o own) off() float64 { return o.planned/o.measure - 1 }

// runOwn trains every layout for some steps and plans it on the machine that was measured.
func runOwn(ctx context.Context, w io.Writer, c plan.Cluster, steps int) error {
	corpus, err := data.Of(data.Bytes{}, 0, strings.Repeat("Ranks meet in groups, and groups lie along axes. ", 4000))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%-88s %12s %12s %7s\n", "layout", "measured", "planned", "off")
	var all []own
	for _, text := range ownRuns {
		o, err := runOne(ctx, c, corpus, text, steps)
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		all = append(all, o)
		fmt.Fprintf(w, "%-88s %12s %12s %+6.1f%%\n", o.layout, plan.Seconds(o.measure), plan.Seconds(o.planned), 100*o.off())
	}
	var abs []float64
	for _, o := range all {
		abs = append(abs, math.Abs(o.off()))
	}
	slices.Sort(abs)
	mean := 0.0
	for _, x := range abs {
		mean += x / float64(len(abs))
	}
	fmt.Fprintf(w, "%d layouts: median error %.1f%%, mean %.1f%%, worst %.1f%%\n",
		len(abs), 100*abs[len(abs)/2], 100*mean, 100*abs[len(abs)-1])
	return nil
}

func runOne(ctx context.Context, c plan.Cluster, corpus *data.Corpus, text string, steps int) (own, error) {
	sets := append(append(slices.Clone(ownModel), fmt.Sprintf("train.steps=%d", steps)), strings.Fields(text)...)
	cfg, err := configs.Parse(nil, sets)
	if err != nil {
		return own{}, err
	}
	p, err := plan.On(cfg, c)
	if err != nil {
		return own{}, err
	}
	res, err := train.Run(ctx, cfg, train.Options{Corpus: corpus})
	if err != nil {
		return own{}, err
	}
	if text == "" {
		text = "one rank"
	}
	return own{layout: text, planned: p.Step.Seconds, measure: res.StepMS / 1e3}, nil
}
