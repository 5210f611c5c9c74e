package dialect

import (
	"fmt"
	"strings"

	"triax/nn"
)

// script collects flags, in paragraphs.
type script struct {
	lines []string
	line  []string
}

func (s *script) flag(name string, v ...any) {
	for _, x := range v {
		if f, ok := x.(float64); ok {
			x = decimal(f)
		}
		name += " " + fmt.Sprint(x)
	}
	s.line = append(s.line, name)
}

func (s *script) on(ok bool, name string) {
	if ok {
		s.flag(name)
	}
}

func (s *script) end() {
	if len(s.line) > 0 {
		s.lines = append(s.lines, strings.Join(s.line, " "))
	}
	s.line = nil
}

// megatron writes a launch script for pretrain_gpt.py, without paths of data and checkpoints.
func (w *writer) megatron() string {
	c := w.c
	s := &script{}
	w.megatronModel(s)
	w.megatronMesh(s)
	w.megatronZero(s)
	w.megatronLoop(s)
	per := w.perNode()
	head := fmt.Sprintf("#!/bin/bash\n# Megatron-LM, core 0.20. Data, tokenizer and checkpoint paths are left to you.\ntorchrun --nproc_per_node %d --nnodes %d pretrain_gpt.py \\\n", per, c.Mesh.World()/per)
	return head + "    " + strings.Join(s.lines, " \\\n    ") + "\n"
}

func (w *writer) megatronModel(s *script) {
	m := w.c.Model
	s.flag("--num-layers", m.Layers)
	s.flag("--hidden-size", m.Width)
	s.flag("--num-attention-heads", m.Heads)
	s.flag("--ffn-hidden-size", m.Hidden)
	s.flag("--seq-length", m.Sequence)
	s.flag("--max-position-embeddings", m.Sequence)
	s.flag("--vocab-size", m.Vocab)
	s.flag("--make-vocab-size-divisible-by", 1)
	s.end()
	if m.HeadDim*m.Heads != m.Width {
		s.flag("--kv-channels", m.HeadDim)
	}
	if m.KVHeads != m.Heads {
		s.flag("--group-query-attention")
		s.flag("--num-query-groups", m.KVHeads)
	}
	if m.Family == nn.Llama {
		s.flag("--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear")
		s.flag("--rotary-base", int(m.RopeBase))
		w.refuse(m.RopeBase != float64(int(m.RopeBase)), "model.rope_base", m.RopeBase, "a whole number there", "use 10000")
	}
	s.on(!m.Tied, "--untie-embeddings-and-output-weights")
	s.flag("--norm-epsilon", m.Eps)
	s.flag("--init-method-std", m.InitStd)
	s.flag("--attention-dropout", m.Dropout)
	s.flag("--hidden-dropout", m.Dropout)
	s.end()
	if m.Experts > 0 {
		s.flag("--num-experts", m.Experts)
		s.flag("--moe-router-topk", m.TopK)
		s.flag("--moe-aux-loss-coeff", m.AuxLoss)
		if m.CapacityFactor > 0 {
			s.flag("--moe-expert-capacity-factor", m.CapacityFactor)
		}
		s.flag("--moe-token-dispatcher-type alltoall")
		s.end()
	}
	switch m.Recompute {
	case nn.RecomputeSelective:
		w.no("model.recompute", m.Recompute, "the attention half of each block is made again here, the scores alone there", `use "none" or "full"`)
	case nn.RecomputeFull:
		s.flag("--recompute-granularity full --recompute-method")
		if n := m.RecomputeLayers; n > 0 && n < m.Layers {
			w.refuse(w.c.Mesh.PP > 1, "model.recompute_layers", n, "the first blocks of each stage are recomputed there, the first of the model here", "use 0")
			s.flag("block --recompute-num-layers", n)
		} else {
			s.flag("uniform --recompute-num-layers 1")
		}
		s.end()
	}
}

func (w *writer) megatronMesh(s *script) {
	c, m := w.c, w.c.Mesh
	s.flag("--tensor-model-parallel-size", m.TP)
	s.flag("--pipeline-model-parallel-size", m.PP)
	s.flag("--context-parallel-size", m.CP)
	if c.Model.Experts > 0 {
		s.flag("--expert-model-parallel-size", m.EP)
		s.flag("--expert-tensor-parallel-size 1")
	}
	w.refuse(m.EP > 1 && c.Model.Experts == 0, "mesh.ep", m.EP, "there are no experts", "use 1")
	s.on(m.SequenceParallel && m.TP > 1, "--sequence-parallel")
	w.refuse(c.Model.Experts > 0 && m.TP > 1 && !m.SequenceParallel, "mesh.sequence_parallel", false, "experts with tensor ranks need it there", "use true")
	switch order := strings.Join(m.Axes, " "); {
	case order == "pp dp_replicate dp ep cp tp":
	case order == "dp_replicate dp ep cp pp tp":
		s.flag("--use-tp-pp-dp-mapping")
	case m.PP == 1 || m.Replicas()*m.CP == 1:
	default:
		w.no("mesh.axes", m.Axes, "ranks are ordered tp-cp-ep-dp-pp or tp-pp-dp there", `use ["pp", "dp_replicate", "dp", "ep", "cp", "tp"]`)
	}
	s.end()
	w.megatronStages(s)
	s.flag("--micro-batch-size", w.micro())
	s.flag("--global-batch-size", c.Train.Batch)
	s.end()
}

// megatronStages writes schedule, chunks and the layers of stages.
func (w *writer) megatronStages(s *script) {
	p, m := w.c.Pipeline, w.c.Mesh
	if m.PP == 1 {
		return
	}
	w.refuse(p.File != "", "pipeline.file", p.File, "schedules of the user's own are not run there", `use "1f1b" or "interleaved"`)
	chunks := 1
	switch p.Schedule {
	case "1f1b":
	case "interleaved":
		chunks = p.Chunks
		w.refuse(p.Microbatches%m.PP != 0, "pipeline.microbatches", p.Microbatches, fmt.Sprintf("interleaved stages take a multiple of %d pipeline ranks there", m.PP), fmt.Sprintf("use %d", (p.Microbatches/m.PP+1)*m.PP))
	default:
		w.no("pipeline.schedule", p.Schedule, "Megatron-LM runs 1f1b and interleaved", `use "1f1b" or "interleaved"`)
	}
	w.refuse(p.Balance == "cost" && len(p.Layers) == 0, "pipeline.balance", p.Balance, "layers are cut by number there", "write the layers of each stage as pipeline.layers")
	stages := m.PP * chunks
	switch {
	case len(p.Layers) > 0 && !even(p.Layers):
		s.flag("--pipeline-model-parallel-layout", `"`+layout(p.Layers)+`"`)
	case w.c.Model.Layers%stages != 0:
		w.no("model.layers", w.c.Model.Layers, fmt.Sprintf("%d stages take equally many there", stages), "write the layers of each stage as pipeline.layers")
	case chunks > 1:
		s.flag("--num-layers-per-virtual-pipeline-stage", w.c.Model.Layers/stages)
	}
	s.end()
}

// layout writes the layers of stages as parseLayout reads them.
func layout(list []int) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = strings.Repeat("t", n)
	}
	return "E" + strings.Join(parts, "|") + "L"
}

func (w *writer) megatronZero(s *script) {
	z := w.c.Zero
	switch z.Stage {
	case 1:
		s.flag("--use-distributed-optimizer")
	case 2, 3:
		w.refuse(w.c.Mesh.PP > 1, "zero.stage", z.Stage, "Megatron-FSDP is not combined with a pipeline", "use 1")
		s.flag("--use-distributed-optimizer --use-megatron-fsdp --data-parallel-sharding-strategy", []string{"optim_grads", "optim_grads_params"}[z.Stage-2])
	}
	w.refuse(z.KeepAfterForward && z.Stage == 3, "zero.keep_after_forward", true, "parameters are freed after the forward there", "use false")
	if w.c.Mesh.Replicate > 1 {
		w.refuse(z.Stage != 1, "mesh.dp_replicate", w.c.Mesh.Replicate, "several instances of the optimizer are of ZeRO stage 1 there", "use zero.stage = 1")
		s.flag("--num-distributed-optimizer-instances", w.c.Mesh.Replicate)
	}
	if z.Overlap {
		s.flag("--overlap-grad-reduce")
		s.on(z.Stage > 0, "--overlap-param-gather")
	}
	if z.Stage < 3 {
		s.flag("--ddp-bucket-size", w.bucket())
	}
	s.end()
}

func (w *writer) megatronLoop(s *script) {
	o, t := w.c.Optim, w.c.Train
	if p := w.precision(); p != "fp32" {
		s.flag("--" + p)
	}
	if o.Rule == "sgd" {
		s.flag("--optimizer sgd --sgd-momentum", o.Momentum)
	} else {
		s.flag("--optimizer adam")
		s.flag("--adam-beta1", o.Betas[0])
		s.flag("--adam-beta2", o.Betas[1])
		s.flag("--adam-eps", o.Eps)
	}
	s.flag("--weight-decay", o.WeightDecay)
	s.flag("--clip-grad", o.Clip)
	s.end()
	s.flag("--lr", o.LR)
	s.flag("--min-lr", o.MinLR)
	s.flag("--lr-decay-style", o.Curve)
	s.flag("--lr-warmup-iters", o.Warmup)
	s.flag("--train-iters", t.Steps)
	s.flag("--seed", t.Seed)
	s.end()
}
