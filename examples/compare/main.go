// Command compare plans what people say of ZeRO-3 against model parallelism: first the runs that were published, then what
// overlap, hybrid sharding, larger batches and newer devices change, then one small host. Nothing runs but the planner.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"triax/configs"
	"triax/plan"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	for _, part := range []func(io.Writer) error{published, since, small} {
		if err := part(out); err != nil {
			return err
		}
	}
	return nil
}

// old is the software of the published runs. ZeRO-3 gathered each parameter by itself, and again for the recomputation.
var old = []string{"cluster.program=megatron-2021"}
var oldZero = append(slices.Clone(old), "cluster.pieces=12", "cluster.regather=true", "cluster.network_latency_us=14")

// published holds Narayanan et al. 2021, table 2, against the plan: TFLOP/s a GPU at a fixed global batch of 1,536.
func published(out io.Writer) error {
	fmt.Fprintln(out, "GPT 174.6B on A100s, 1,536 samples of 2,048 tokens a step: TFLOP/s a GPU")
	fmt.Fprintln(out, "                 ZeRO-3               tensor 8, pipeline 12, data")
	fmt.Fprintln(out, " GPUs   measured    planned           measured    planned")
	for _, r := range []struct {
		gpus, micro int // micro is samples a microbatch of the ZeRO-3 run
		zero, cut   float64
	}{{384, 4, 144, 153}, {768, 2, 88, 149}, {1536, 1, 44, 141}} {
		zero, err := planOf("175b-zero3", append(oldZero, fmt.Sprintf("mesh.dp=%d", r.gpus))...)
		if err != nil {
			return err
		}
		cut, err := planOf("175b-3d", append(old, fmt.Sprintf("mesh.dp=%d", r.gpus/96), fmt.Sprintf("pipeline.microbatches=%d", 1536*96/r.gpus))...)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%5d %10.0f %10.0f %18.0f %10.0f\n", r.gpus, r.zero, rate(zero), r.cut, rate(cut))
	}
	return nil
}

// rate is TFLOP/s a GPU as Narayanan et al. 2021, §5.1, equation 3, count them: full recomputation, attention not halved.
func rate(p *plan.Plan) float64 {
	m := p.Config.Model
	l, h, s, v := float64(m.Layers), float64(m.Width), float64(m.Sequence), float64(m.Vocab)
	return 96 * float64(p.Tokens) * l * h * h * (1 + s/(6*h) + v/(16*l*h)) / p.Step.Seconds / float64(p.Ranks) / 1e12
}

// since is the same model at 1,536 GPUs under today's software: the rate of each way of ZeRO-3 over that of the three-way cut.
func since(out io.Writer) error {
	fmt.Fprintln(out, "\nThe same on 1,536 GPUs with flat buckets: speed over that of tensor 8, pipeline 12, data 16 at the same batch")
	fmt.Fprintln(out, "                              A100, batch 1,536       3,072       6,144        H100, batch 1,536")
	for _, way := range []struct{ name, file string }{
		{"ZeRO-3, nothing overlapped", "175b-zero3"}, {"ZeRO-3, overlapped", "175b-zero3-overlap"},
		{"in groups of 64", "175b-hybrid-sharding"}, {"over 192, tensor 8 in a node", "175b-zero3-tp"},
	} {
		fmt.Fprintf(out, "%-29s", way.name)
		for _, c := range []struct {
			batch int
			gpu   string
		}{{1536, "a100-80"}, {3072, "a100-80"}, {6144, "a100-80"}, {1536, "h100-sxm"}} {
			batch, gpu := fmt.Sprint("train.batch=", c.batch), "cluster.gpu="+c.gpu
			cut, err := planOf("175b-3d", batch, gpu, fmt.Sprint("pipeline.microbatches=", c.batch/16))
			if err != nil {
				return err
			}
			p, err := planOf(way.file, batch, gpu) // one microbatch, however large
			if err != nil {
				return err
			}
			fmt.Fprintf(out, " %14.2f", cut.Step.Seconds/p.Step.Seconds)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// small is fine-tuning on one host.
func small(out io.Writer) error {
	fmt.Fprintln(out, "\nLlama 2 7B with AdamW on eight 24 GB cards in one host")
	for stage := range 4 {
		p, err := planOf("7b", fmt.Sprint("zero.stage=", stage))
		if err != nil {
			return err
		}
		fits := "fits"
		if !p.Fits {
			fits = "does not fit"
		}
		fmt.Fprintf(out, "ZeRO-%d %10s  %-12s  %s a step\n", stage, plan.Bytes(p.Memory[p.Worst].Peak), fits, plan.Seconds(p.Step.Seconds))
	}
	return nil
}

func planOf(name string, overrides ...string) (*plan.Plan, error) {
	text, err := configs.Compare.ReadFile("compare/" + name + ".toml")
	if err != nil {
		return nil, err
	}
	cfg, err := configs.Parse(text, overrides)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p, err := plan.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
